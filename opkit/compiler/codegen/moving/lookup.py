"""The kernel that takes rows of a table by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkit.chips import Chip

from ...ir import Location
from ..core_count import fair_cores
from ..kernel_class import KernelClass, TilingValue, class_of, struct_of
from ..launch_numbers import least, most, named
from ..text import Text

__all__ = ["lookup_values", "write_lookup"]

_INDICES = 512
"""Indices that a core holds at once."""
_ROW_BYTES = 32768
_ROW_CYCLES = 200
"""That a row takes beside its bytes: the scalar unit reads where it is, and two copies begin."""
_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t"}


def write_lookup(
    name: str, size_bytes: int, index_type: str, location: Location | None = None
) -> KernelClass:
    """Return a kernel of `y[a, j, :] = table[a, index[j], :]`, which the user's line asks for."""
    kind = _TYPES[min(size_bytes, 4)]
    struct_name, class_name = struct_of(name), class_of(name)
    declaration = Text()
    declaration.all(
        [
            f"struct {struct_name} {{",
            "int64_t perBlock;  // indices of every core, over all tables",
            "int64_t extra;  // the first cores take one more",
            "int64_t tables;  // how many there are behind one another",
            "int64_t rows;  // of a table",
            "int64_t count;  // indices for each table",
            "int64_t length;  // elements of a row",
            "int64_t part;  // elements that are copied at once",
            "};",
        ]
    )
    out = Text()
    out.all(
        [
            "// The scalar unit reads an index, and a row goes through a buffer in parts.",
            f"class {class_name} {{",
            "public:",
            "__aicore__ inline void Init(GM_ADDR table, GM_ADDR index, GM_ADDR"
            f" y, const {struct_name}& given)",
            "{",
            "tiling = given;",
            "const int64_t block = GetBlockIdx();",
            "first = block * tiling.perBlock + (block < tiling.extra ? block : tiling.extra);",
            "last = first + tiling.perBlock + (block < tiling.extra ? 1 : 0);",
            f"tableGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ {kind}*>(table),",
            "                            tiling.tables * tiling.rows * tiling.length);",
            "indexGlobal.SetGlobalBuffer(reinterpret_cast<__gm__"
            f" {index_type}*>(index), tiling.count);",
            f"yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ {kind}*>(y),",
            "                        tiling.tables * tiling.count * tiling.length);",
            f"pipe.InitBuffer(queue, 2, {_ROW_BYTES});",
            f"pipe.InitBuffer(indexBuffer, {_INDICES} * sizeof({index_type}));",
            "}",
            "",
            "__aicore__ inline void Process()",
            "{",
            f"const LocalTensor<{index_type}> indices = indexBuffer.Get<{index_type}>();",
            "int64_t begin = -1;  // the first index in the buffer",
            "for (int64_t item = first; item < last; ++item) {",
            "const int64_t at = item % tiling.count;",
            f"if (begin < 0 || at < begin || at >= begin + {_INDICES}) {{",
            "begin = at;",
            "const int64_t rest = tiling.count - begin;",
            f"const uint32_t some = static_cast<uint32_t>(rest < {_INDICES} ? rest : {_INDICES});",
            "Order<HardEvent::S_MTE2>();",
            f"const uint32_t bytes = some * sizeof({index_type});",
            "DataCopyPad(indices, indexGlobal[begin], DataCopyExtParams{1, bytes, 0, 0, 0},",
            f"            DataCopyPadExtParams<{index_type}>());",
            "Order<HardEvent::MTE2_S>();",
            "}",
            "int64_t row = static_cast<int64_t>(indices.GetValue(at - begin));",
            "row += row < 0 ? tiling.rows : 0;  // counted from the end",
            "Move((item / tiling.count * tiling.rows + row) * tiling.length,"
            " item * tiling.length);",
            "}",
            "}",
            "",
            "private:",
            "__aicore__ inline void Move(int64_t source, int64_t target)",
            "{",
            "for (int64_t done = 0; done < tiling.length; done += tiling.part) {",
            "const int64_t rest = tiling.length - done;",
            "const uint32_t bytes = static_cast<uint32_t>((rest < tiling.part"
            f" ? rest : tiling.part) * sizeof({kind}));",
            f"LocalTensor<{kind}> buffer = queue.AllocTensor<{kind}>();",
            "DataCopyPad(buffer, tableGlobal[source + done], DataCopyExtParams{1, bytes, 0, 0, 0},"
            f" DataCopyPadExtParams<{kind}>());",
            f"queue.EnQue<{kind}>(buffer);",
            f"buffer = queue.DeQue<{kind}>();",
            "DataCopyPad(yGlobal[target + done], buffer, DataCopyExtParams{1, bytes, 0, 0, 0});",
            "queue.FreeTensor(buffer);",
            "}",
            "}",
            "",
            "template <HardEvent event>",
            "__aicore__ inline void Order()",
            "{",
            "const int32_t id = static_cast<int32_t>(pipe.FetchEventID(event));",
            "SetFlag<event>(id);",
            "WaitFlag<event>(id);",
            "}",
            "",
            "TPipe pipe;",
            "TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 2> queue;",
            "TBuf<QuePosition::VECCALC> indexBuffer;",
            f"GlobalTensor<{kind}> tableGlobal;",
            f"GlobalTensor<{index_type}> indexGlobal;",
            f"GlobalTensor<{kind}> yGlobal;",
            "int64_t first = 0;",
            "int64_t last = 0;",
            f"{struct_name} tiling;",
            "};",
        ]
    )
    out.mark(location, "DataCopyPad(", "int64_t row = ")
    return KernelClass(name, class_name, struct_name, declaration, out, ("table", "index", "y"))


def lookup_values(
    table: Sequence[Any],
    axis: int,
    count: Any,
    size_bytes: int,
    cores: Any,
    chip: Chip | None = None,
) -> tuple[Any, list[TilingValue]]:
    """Return the cores and the tiling data of a lookup along one axis of a table.

    Args:
        table: its shape.
        axis: which of its axes.
        count: how many indices there are.
        size_bytes: of an element.
        cores: that the chip has.
        chip: where all sizes are known: as many cores as make the launch shortest.
    """
    tables: Any = 1
    length: Any = max(1, size_bytes // 4)
    for extent in table[:axis]:
        tables = tables * extent
    for extent in table[axis + 1 :]:
        length = length * extent
    items = named("items", tables * count)
    if chip is not None:
        moved = length * min(size_bytes, 4)
        cores = fair_cores(
            *(chip, items, cores), vector_cycles=_ROW_CYCLES, read_bytes=moved, written_bytes=moved
        )
    used = named("used", most(1, least(cores, items)))
    values = {
        "perBlock": items // used,
        "extra": items % used,
        "tables": tables,
        "rows": table[axis],
        "count": count,
        "length": length,
        "part": _ROW_BYTES // min(size_bytes, 4),
    }
    return used, [TilingValue(name, "int64_t", value) for name, value in values.items()]
