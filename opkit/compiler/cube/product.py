"""A product of matrices on cube cores, by the Matmul object, and its tiling data."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from opkit.chips import Chip
from opkit.dtypes import find_dtype

from ..text import Text

__all__ = ["ProductShape", "product_data", "write_product"]

_SIDE = 16
_BASE_M = 128
_BASE_N = 256
_BASE_K_BYTES = 128
_DEPTH = 4
"""Base blocks of K that one copy brings to L1; there are two such buffers."""
_FIELDS = (
    *("batches", "leftBatch", "rightBatch", "perBlock", "extra"),
    *("m", "n", "k", "baseM", "baseN", "baseK", "depth", "tilesM", "tilesN"),
)


@dataclass(frozen=True)
class ProductShape:
    """The sizes of one launch."""

    batches: int
    m: int
    n: int
    k: int
    left_is_shared: bool
    """One left matrix for all batches."""
    right_is_shared: bool


def write_product(
    name: str,
    left: str,
    right: str,
    result: str,
    *,
    transpose_left: bool,
    transpose_right: bool,
    bias: str | None,
) -> Text:
    """Return the source of `y = left @ right + bias`; the names are data types.

    Args:
        name: the entry point.
        left: the left matrices' data type.
        right: the right matrices' data type.
        result: the result's data type.
        transpose_left: the left matrices lie by columns.
        transpose_right: the right matrices lie by columns.
        bias: the data type of one number a column; None for none.
    """
    struct_name = f"{name.title().replace('_', '')}Tiling"
    kernel = f"Kernel{struct_name.removesuffix('Tiling')}"
    out = Text()

    def cpp(dtype: str) -> str:
        row = find_dtype(dtype)
        assert row is not None
        return row.kernel

    def operand(dtype: str, is_transposed: bool = False) -> str:
        flag = ", true" if is_transposed else ""
        return f"MatmulType<TPosition::GM, CubeFormat::ND, {cpp(dtype)}{flag}>"

    bias_type = "float" if result != "int32" else "int32_t"
    if bias is not None:
        bias_type = cpp(bias)
    parameters = "GM_ADDR left, GM_ADDR right, " + ("GM_ADDR bias, " if bias else "") + "GM_ADDR y"
    arguments = "left, right, " + ("bias, " if bias else "") + "y"
    out(f"struct {struct_name} {{")
    notes = {
        "leftBatch": "elements from one left matrix to the next; 0: one for all",
        "perBlock": "tiles of every core",
        "extra": "the first cores take one more",
        "baseM": "rows of a tile",
        "depth": "blocks of K that a copy to L1 brings",
    }
    for field in _FIELDS:
        out(f"int64_t {field};{'  // ' + notes[field] if field in notes else ''}")
    out("};")
    out()
    out(
        "// A cube core takes tiles of the result; their sums over K run through two buffers of L1 and of L0A and L0B."
    )
    out(f"class {kernel} {{")
    out("public:")
    out(f"__aicore__ inline void Init({parameters}, const {struct_name}& given)")
    out("{")
    out("tiling = given;")
    out(f"leftGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ {cpp(left)}*>(left));")
    out(f"rightGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ {cpp(right)}*>(right));")
    if bias:
        out(f"biasGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ {bias_type}*>(bias));")
    out(f"yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ {cpp(result)}*>(y));")
    pairs = {
        **{
            "usedCoreNum": "1",
            "M": "tiling.m",
            "N": "tiling.n",
            "Ka": "tiling.k",
            "Kb": "tiling.k",
        },
        **{"singleCoreM": "tiling.baseM", "singleCoreN": "tiling.baseN", "singleCoreK": "tiling.k"},
        **{"baseM": "tiling.baseM", "baseN": "tiling.baseN", "baseK": "tiling.baseK"},
        **{
            "depthA1": "2 * tiling.depth",
            "depthB1": "2 * tiling.depth",
            "stepM": "1",
            "stepN": "1",
        },
        **{"stepKa": "tiling.depth", "stepKb": "tiling.depth", "isBias": "1" if bias else "0"},
        **{"dbL0A": "2", "dbL0B": "2", "dbL0C": "1", "iterateOrder": "0"},
    }
    for field, value in pairs.items():
        out(f"shape.{field} = {value};")
    out("}")
    out()
    out("__aicore__ inline void Process()")
    out("{")
    out("REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), product, &shape);")
    out("product.SetOrgShape(tiling.m, tiling.n, tiling.k);")
    out("const int64_t block = GetBlockIdx();")
    out("const int64_t extra = tiling.extra;")
    out("const int64_t first = block * tiling.perBlock + (block < extra ? block : extra);")
    out("const int64_t last = first + tiling.perBlock + (block < extra ? 1 : 0);")
    out("for (int64_t tile = first; tile < last; ++tile) {")
    out("const int64_t batch = tile / (tiling.tilesM * tiling.tilesN);")
    out("const int64_t row = tile / tiling.tilesN % tiling.tilesM * tiling.baseM;")
    out("const int64_t column = tile % tiling.tilesN * tiling.baseN;")
    left_at = "row" if transpose_left else "row * tiling.k"
    right_at = "column * tiling.k" if transpose_right else "column"
    flags = ("true" if transpose_left else "false", "true" if transpose_right else "false")
    out(
        "product.SetSingleShape(Rest(tiling.m - row, tiling.baseM), Rest(tiling.n - column, tiling.baseN), tiling.k);"
    )
    out(f"product.SetTensorA(leftGlobal[batch * tiling.leftBatch + {left_at}], {flags[0]});")
    out(f"product.SetTensorB(rightGlobal[batch * tiling.rightBatch + {right_at}], {flags[1]});")
    if bias:
        out("product.SetBias(biasGlobal[column]);")
    out("product.IterateAll(yGlobal[(batch * tiling.m + row) * tiling.n + column]);")
    out("}")
    out("product.End();")
    out("}")
    out()
    out("private:")
    out("static __aicore__ inline int64_t Rest(int64_t rest, int64_t base)")
    out("{")
    out("return rest < base ? rest : base;")
    out("}")
    out()
    out("TPipe pipe;")
    out("TCubeTiling shape = {};")
    types = [operand(left, transpose_left), operand(right, transpose_right), operand(result)]
    out(f"Matmul<{types[0]}, {types[1]},")
    out(f"       {types[2]}, MatmulType<TPosition::GM, CubeFormat::ND, {bias_type}>> product;")
    out(f"GlobalTensor<{cpp(left)}> leftGlobal;")
    out(f"GlobalTensor<{cpp(right)}> rightGlobal;")
    if bias:
        out(f"GlobalTensor<{bias_type}> biasGlobal;")
    out(f"GlobalTensor<{cpp(result)}> yGlobal;")
    out(f"{struct_name} tiling;")
    out("};")
    out()
    out(f'extern "C" __global__ __aicore__ void {name}({parameters}, {struct_name} tiling)')
    out("{")
    out(f"{kernel} op;")
    out(f"op.Init({arguments}, tiling);")
    out("op.Process();")
    out("}")
    return out


def product_data(shape: ProductShape, dtype: str, chip: Chip) -> tuple[int, bytes]:
    """Return the cores and the tiling data of a product.

    Tiles are 128 x 256 where the result fills all cores with them, and narrower where it does not.
    """
    row = find_dtype(dtype)
    assert row is not None
    cores = chip.count("cores.aic")
    base_m = min(_BASE_M, _up(shape.m))
    base_n = min(_BASE_N, _up(shape.n))

    def tiles(m: int, n: int) -> int:
        return shape.batches * -(-shape.m // m) * -(-shape.n // n)

    while tiles(base_m, base_n) < cores and base_n > 64:
        base_n = _up(base_n // 2)
    while tiles(base_m, base_n) < cores and base_m > 32:
        base_m = _up(base_m // 2)
    base_k = min(_BASE_K_BYTES // row.size_bytes, _up(shape.k))
    total = tiles(base_m, base_n)
    used = min(cores, total)
    each, extra = divmod(total, used)
    left = 0 if shape.left_is_shared else shape.m * shape.k
    right = 0 if shape.right_is_shared else shape.k * shape.n
    values = (
        *(shape.batches, left, right, each, extra),
        *(shape.m, shape.n, shape.k, base_m, base_n, base_k, _DEPTH),
        *(-(-shape.m // base_m), -(-shape.n // base_n)),
    )
    return used, struct.pack(f"={len(_FIELDS)}q", *values)


def _up(value: int) -> int:
    return max(_SIDE, -(-value // _SIDE) * _SIDE)
