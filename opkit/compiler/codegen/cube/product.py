"""A product of matrices on cube cores, by the Matmul object, and its tiling data."""

from __future__ import annotations

from typing import Any

from opkit.dtypes import find_dtype

from ...choices import OWN_CHOICES, Choices
from ..kernel_class import TilingValue, struct_of
from ..launch_numbers import both, choose, divide_up, least, most, named
from ..text import Text
from .blocks import FREE, READY, SLOTS, BlockProduct, cpp, size_bytes
from .cutting import ProductShape
from .entry import Work

__all__ = ["product_values", "write_object_cube", "write_object_product"]

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


def write_object_product(
    name: str,
    left: str,
    right: str,
    result: str,
    *,
    transpose_left: bool,
    transpose_right: bool,
    bias: str | None,
) -> tuple[Text, Text, str, Work]:
    """Return tiling structure and class of `y = left @ right + bias`, the structure's name, and what
    a cube core runs; the names are data types.

    Args:
        name: the entry point.
        left: the left matrices' data type.
        right: the right matrices' data type.
        result: the result's data type.
        transpose_left: the left matrices lie by columns.
        transpose_right: the right matrices lie by columns.
        bias: the data type of one number a column; None for none.
    """
    struct_name = struct_of(name.title().replace("_", ""))
    kernel = f"Kernel{struct_name.removesuffix('Tiling')}"
    out = Text()

    def operand(dtype: str, is_transposed: bool = False) -> str:
        flag = ", true" if is_transposed else ""
        return f"MatmulType<TPosition::GM, CubeFormat::ND, {cpp(dtype)}{flag}>"

    bias_type = "float" if result != "int32" else "int32_t"
    if bias is not None:
        bias_type = cpp(bias)
    arguments = ["left", "right", *(["bias"] if bias else []), "y"]
    parameters = ", ".join(f"GM_ADDR {each}" for each in arguments)
    declaration = Text()
    declaration(f"struct {struct_name} {{")
    notes = {
        "leftBatch": "elements from one left matrix to the next; 0: one for all",
        "perBlock": "tiles of every core",
        "extra": "the first cores take one more",
        "baseM": "rows of a tile",
        "depth": "blocks of K that a copy to L1 brings",
    }
    for field in _FIELDS:
        declaration(f"int64_t {field};{'  // ' + notes[field] if field in notes else ''}")
    declaration("};")
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
    return declaration, out, struct_name, Work(kernel, arguments)


def write_object_cube(out: Text, product: BlockProduct, sums: str) -> None:
    """Write the cube cores' class of a mixed kernel whose matrices a Matmul object multiplies.

    Args:
        out: where to.
        product: what is multiplied.
        sums: the data type in which parts are handed over.
    """
    words = {
        "CLASS": product.cube_class,
        "STRUCT": product.struct,
        "TYPE": product.operand,
        "SUMS": cpp(sums),
        "BASEK": str(_BASE_K_BYTES // size_bytes(product.dtype)),
        "SLOTS": str(SLOTS),
        "READY": str(READY),
        "FREE": str(FREE),
        "LEFTTURNED": str(product.transpose_left).lower(),
        "RIGHTTURNED": str(product.transpose_right).lower(),
        "LEFTAT": "block.row" if product.transpose_left else "block.row * tiling.k",
        "RIGHTAT": "column * tiling.k" if product.transpose_right else "column",
    }
    for line in _OBJECT_CUBE.strip().splitlines():
        for word, text in words.items():
            line = line.replace(word, text)
        out(line, product.location if line.startswith("product.IterateAll") else None)


_OBJECT_CUBE = """
// A cube core's blocks, one after another, by a Matmul object; each in two parts, which the vector cores finish.
class CLASS : Blocks {
public:
__aicore__ inline void Init(GM_ADDR left, GM_ADDR right, GM_ADDR result, const STRUCT& given)
{
tiling = given;
leftGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(left));
rightGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(right));
resultGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ SUMS*>(result));
shape.usedCoreNum = 1;
shape.M = tiling.m;
shape.N = tiling.n;
shape.Ka = tiling.k;
shape.Kb = tiling.k;
shape.singleCoreM = tiling.rowsEach + 16;
shape.singleCoreN = tiling.slotColumns;
shape.singleCoreK = tiling.k;
shape.baseM = 128;
shape.baseN = 128;
shape.baseK = BASEK;
shape.depthA1 = 4;
shape.depthB1 = 4;
shape.stepM = 1;
shape.stepN = 1;
shape.stepKa = 2;
shape.stepKb = 2;
shape.dbL0A = 2;
shape.dbL0B = 2;
shape.dbL0C = 1;
}

__aicore__ inline void Process()
{
if (GetBlockIdx() >= tiling.blocks) {
return;
}
REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), product, &shape);
product.SetOrgShape(tiling.m, tiling.n, tiling.k, tiling.k, tiling.slotColumns);
for (int64_t index = GetBlockIdx(); index < tiling.blocks; index += GetBlockNum()) {
const Block block = BlockAt(index);
const bool isFinal = IsFinal(index);
for (uint32_t begin = 0; begin < block.columns; begin = PartEnd(begin, block.columns, isFinal)) {
Part(block, begin, PartEnd(begin, block.columns, isFinal));
}
}
product.End();
// The vector cores have read what was handed over last.
for (uint32_t i = handed < SLOTS ? 0 : handed - SLOTS; i < handed; ++i) {
CrossCoreWaitFlag<2, PIPE_FIX>(FREE);
}
}

private:
__aicore__ inline void Part(const Block& block, uint32_t begin, uint32_t end)
{
if (handed >= SLOTS) {
CrossCoreWaitFlag<2, PIPE_FIX>(FREE);
}
const int64_t column = block.column + begin;
const int64_t slot = GetBlockIdx() * SLOTS + handed % SLOTS;
product.SetSingleShape(block.rows, end - begin, tiling.k);
product.SetTensorA(leftGlobal[block.batch * tiling.batchLeft + LEFTAT], LEFTTURNED);
product.SetTensorB(rightGlobal[block.batch * tiling.batchRight + RIGHTAT], RIGHTTURNED);
product.IterateAll(resultGlobal[slot * tiling.slotLength]);
CrossCoreSetFlag<2, PIPE_FIX>(READY);
++handed;
}

TPipe pipe;
TCubeTiling shape = {};
Matmul<MatmulType<TPosition::GM, CubeFormat::ND, TYPE, LEFTTURNED>, MatmulType<TPosition::GM, CubeFormat::ND, TYPE, RIGHTTURNED>,
       MatmulType<TPosition::GM, CubeFormat::ND, SUMS>, MatmulType<TPosition::GM, CubeFormat::ND, SUMS>> product;
GlobalTensor<TYPE> leftGlobal;
GlobalTensor<TYPE> rightGlobal;
GlobalTensor<SUMS> resultGlobal;
uint32_t handed = 0;
};
"""


def product_values(
    shape: ProductShape,
    dtype: str,
    cores: Any,
    choices: Choices = OWN_CHOICES,
    *,
    least_cores: int = 1,
) -> tuple[Any, list[TilingValue]]:
    """Return the cores and the tiling data of a product on so many cores.

    Tiles are 128 x 256 where the result fills all cores with them, and narrower where it does not.
    """
    row = find_dtype(dtype)
    assert row is not None
    base_m = named("baseM", least(_BASE_M, _up(shape.m)))
    base_n = named("baseN", least(_BASE_N, _up(shape.n)))

    def tiles(m: Any, n: Any) -> Any:
        return shape.batches * divide_up(shape.m, m) * divide_up(shape.n, n)

    for _ in range(_HALVES):
        is_few = both(tiles(base_m, base_n) < cores, base_n > 64)
        base_n = named("baseN", choose(is_few, _up(base_n // 2), base_n))
    for _ in range(_HALVES):
        is_few = both(tiles(base_m, base_n) < cores, base_m > 32)
        base_m = named("baseM", choose(is_few, _up(base_m // 2), base_m))
    base_m = least(choices.base_m or base_m, _up(shape.m))
    base_n = least(choices.base_n or base_n, _up(shape.n))
    base_k = least(_BASE_K_BYTES // row.size_bytes, _up(shape.k))
    total = named("total", tiles(base_m, base_n))
    used = named("used", most(least(cores, total), least_cores))
    left = 0 if shape.left_is_shared else shape.m * shape.k
    right = 0 if shape.right_is_shared else shape.k * shape.n
    values = (
        *(shape.batches, left, right, total // used, total % used),
        *(shape.m, shape.n, shape.k, base_m, base_n, base_k, choices.depth or _DEPTH),
        *(divide_up(shape.m, base_m), divide_up(shape.n, base_n)),
    )
    return used, [
        TilingValue(name, "int64_t", value) for name, value in zip(_FIELDS, values, strict=True)
    ]


_HALVES = 2
"""How often a tile's side is halved until it is no longer than the shortest."""


def _up(value: Any) -> Any:
    return most(_SIDE, divide_up(value, _SIDE) * _SIDE)
