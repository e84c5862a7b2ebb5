"""The kernel that copies boxes, one for every element size and number of inputs, and its tiling
data."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from opkit.chips import Chip
from opkit.errors import UsageError

from ..graph import Location
from ..text import Text
from .pieces import Piece, joined, split_run

__all__ = ["copy_data", "write_copy"]

_OUTER = 4
_BUFFER_BYTES = 32768
_MOST_ROWS = 4095
_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t"}


def write_copy(
    name: str, inputs: int, pieces: int, size_bytes: int, location: Location | None = None
) -> Text:
    """Return the source of a kernel that copies `pieces` boxes from `inputs` tensors, as the
    user's line asks for."""
    out = Text()
    kind = _TYPES[min(size_bytes, 4)]
    struct_name = f"{name.title().replace('_', '')}Tiling"
    out.all(
        [
            "// A box: rows of elements that lie together, within up to four more axes.",
            "struct Box {",
            "int64_t units;  // how often a buffer is filled",
            "int64_t source;  // where it begins",
            "int64_t target;",
            f"int64_t extents[{_OUTER}];",
            f"int64_t sourceSteps[{_OUTER}];",
            f"int64_t targetSteps[{_OUTER}];",
            "int64_t rows;",
            "int64_t sourceRow;  // elements from row to row",
            "int64_t targetRow;",
            "int64_t run;  // elements of a row",
            "int64_t rowsPerUnit;",
            "int64_t input;  // -1: the constant",
            "};",
            "",
            f"struct {struct_name} {{",
            "int64_t perBlock;  // units of every core",
            "int64_t extra;  // the first cores take one more",
            "uint32_t constant;",
            "uint32_t reserved;",
            f"int64_t inputSizes[{max(inputs, 1)}];",
            "int64_t outputSize;",
            f"Box boxes[{pieces}];",
            "};",
            "",
            "// Rows go through a buffer: a copy takes as many as fit, with"
            " the gaps that they have on each side.",
            f"class Kernel{struct_name.removesuffix('Tiling')} {{",
            "public:",
        ]
    )
    parameters = ", ".join([*(f"GM_ADDR x{i}" for i in range(inputs)), "GM_ADDR y"])
    out(f"__aicore__ inline void Init({parameters}, const {struct_name}& given)")
    out("{")
    out("tiling = given;")
    out("const int64_t block = GetBlockIdx();")
    out("first = block * tiling.perBlock + (block < tiling.extra ? block : tiling.extra);")
    out("last = first + tiling.perBlock + (block < tiling.extra ? 1 : 0);")
    for index in range(inputs):
        address = f"reinterpret_cast<__gm__ {kind}*>(x{index})"
        out(f"sources[{index}].SetGlobalBuffer({address}, tiling.inputSizes[{index}]);")
    out(f"output.SetGlobalBuffer(reinterpret_cast<__gm__ {kind}*>(y), tiling.outputSize);")
    out.all(
        [
            "pipe.InitBuffer(queue, 2, BUFFER_BYTES);",
            "pipe.InitBuffer(constantBuffer, BUFFER_BYTES);",
            "constant = constantBuffer.Get<uint32_t>();",
            "Duplicate(constant, tiling.constant, BUFFER_BYTES / 4);",
            "const int32_t id = static_cast<int32_t>(pipe.FetchEventID(HardEvent::V_MTE3));",
            "SetFlag<HardEvent::V_MTE3>(id);",
            "WaitFlag<HardEvent::V_MTE3>(id);",
            "}",
            "",
            "__aicore__ inline void Process()",
            "{",
            "int64_t before = 0;",
            f"for (uint32_t index = 0; index < {pieces}; ++index) {{",
            "const Box& box = tiling.boxes[index];",
            "const int64_t begin = first > before ? first - before : 0;",
            "const int64_t end = last - before < box.units ? last - before : box.units;",
            "for (int64_t unit = begin; unit < end; ++unit) {",
            "Move(box, unit);",
            "}",
            "before += box.units;",
            "}",
            "}",
            "",
            "private:",
            "__aicore__ inline void Move(const Box& box, int64_t unit)",
            "{",
            "const int64_t unitsPerIndex = (box.rows + box.rowsPerUnit - 1) / box.rowsPerUnit;",
            "const int64_t row = unit % unitsPerIndex * box.rowsPerUnit;",
            "int64_t index = unit / unitsPerIndex;",
            "int64_t source = box.source + row * box.sourceRow;",
            "int64_t target = box.target + row * box.targetRow;",
            f"for (int32_t axis = {_OUTER - 1}; axis >= 0; --axis) {{",
            "source += index % box.extents[axis] * box.sourceSteps[axis];",
            "target += index % box.extents[axis] * box.targetSteps[axis];",
            "index /= box.extents[axis];",
            "}",
            "const int64_t rest = box.rows - row;",
            "const uint16_t rows = static_cast<uint16_t>(rest <"
            " box.rowsPerUnit ? rest : box.rowsPerUnit);",
            f"const uint32_t bytes = static_cast<uint32_t>(box.run * sizeof({kind}));",
            "const uint32_t targetGap = rows > 1 ?"
            f" static_cast<uint32_t>(box.targetRow * sizeof({kind})) - bytes : 0;",
            "if (box.input < 0) {",
            f"DataCopyPad(output[target], constant.ReinterpretCast<{kind}>(),"
            " DataCopyExtParams{rows, bytes, 0, targetGap, 0});",
            "return;",
            "}",
            "const uint32_t sourceGap = rows > 1 ?"
            f" static_cast<uint32_t>(box.sourceRow * sizeof({kind})) - bytes : 0;",
            f"LocalTensor<{kind}> buffer = queue.AllocTensor<{kind}>();",
            "DataCopyPad(buffer, sources[box.input][source],"
            " DataCopyExtParams{rows, bytes, sourceGap, 0, 0},"
            f" DataCopyPadExtParams<{kind}>());",
            f"queue.EnQue<{kind}>(buffer);",
            f"buffer = queue.DeQue<{kind}>();",
            "DataCopyPad(output[target], buffer, DataCopyExtParams{rows, bytes, 0, targetGap, 0});",
            "queue.FreeTensor(buffer);",
            "}",
            "",
            f"static constexpr uint32_t BUFFER_BYTES = {_BUFFER_BYTES};",
            "TPipe pipe;",
            "TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 2> queue;",
            "TBuf<QuePosition::VECCALC> constantBuffer;",
            "LocalTensor<uint32_t> constant;",
            f"GlobalTensor<{kind}> sources[{max(inputs, 1)}];",
            f"GlobalTensor<{kind}> output;",
            "int64_t first = 0;",
            "int64_t last = 0;",
            f"{struct_name} tiling;",
            "};",
            "",
            f'extern "C" __global__ __aicore__ void {name}({parameters}, {struct_name} tiling)',
            "{",
            f"Kernel{struct_name.removesuffix('Tiling')} op;",
            f"op.Init({', '.join([*(f'x{i}' for i in range(inputs)), 'y'])}, tiling);",
            "op.Process();",
            "}",
        ]
    )
    out.mark(location, "DataCopyPad(")
    return out


def copy_data(
    pieces: Sequence[Piece],
    sizes: Sequence[int],
    output_size: int,
    size_bytes: int,
    constant_bits: int,
    chip: Chip,
) -> tuple[int, int, bytes]:
    """Return the boxes, the cores and the tiling data of a movement.

    Args:
        pieces: its boxes.
        sizes: elements of each input.
        output_size: elements of the result.
        size_bytes: of one element; 8 bytes move as two words.
        constant_bits: what a constant box holds, its element repeated to four bytes.
        chip: for its number of cores.

    Raises:
        UsageError: a box has more axes than a kernel takes.
    """
    words = max(1, size_bytes // 4)
    unit = min(size_bytes, 4)
    longest = _BUFFER_BYTES // unit // words
    boxes = [
        _box(piece, words, unit) for piece in joined([split_run(each, longest) for each in pieces])
    ]
    total = sum(box[0] for box in boxes)
    cores = max(1, min(chip.count("cores.aiv") or chip.count("cores.aic"), total))
    each, extra = divmod(total, cores)
    head = struct.pack("=qqII", each, extra, constant_bits, 0)
    head += struct.pack(f"={max(len(sizes), 1)}q", *([s * words for s in sizes] or [0]))
    head += struct.pack("=q", output_size * words)
    return len(boxes), cores, head + b"".join(struct.pack(f"={len(b)}q", *b) for b in boxes)


_FEW_ROWS = 16


def _rows_of(axes: Sequence[tuple[int, int]], run: int) -> int | None:
    """Return which axis, each with its extent and the least of its steps, has the rows of a copy:
    the innermost, unless it has few and another has many; None where rows would overlap."""
    if not axes or axes[-1][1] < run:
        return None
    last = len(axes) - 1
    longest = max(range(len(axes)), key=lambda at: axes[at][0] if axes[at][1] >= run else 0)
    is_better = axes[last][0] < _FEW_ROWS and axes[longest][0] > _FEW_ROWS * axes[last][0]
    return longest if is_better else last


def _box(piece: Piece, words: int, unit_bytes: int) -> tuple[int, ...]:
    axes = [(e, s * words, t * words) for e, s, t in piece.axes]
    run = words
    is_constant = piece.source < 0
    if axes and axes[-1][2] == words and (is_constant or axes[-1][1] == words):
        run = axes.pop()[0] * words
    rows, source_row, target_row = 1, run, run
    at = _rows_of([(e, t if is_constant else min(s, t)) for e, s, t in axes], run)
    if at is not None:
        rows, source_row, target_row = axes.pop(at)
    pitch = -(-run * unit_bytes // 32) * 32
    per_unit = max(1, min(_MOST_ROWS, _BUFFER_BYTES // pitch, rows))
    if len(axes) > _OUTER:
        raise UsageError(f"a movement with {len(axes)} axes that do not join has no kernel")
    padded = [(1, 0, 0)] * (_OUTER - len(axes)) + axes
    units = -(-rows // per_unit)
    for extent, _, _ in axes:
        units *= extent
    return (
        units,
        piece.source_offset * words,
        piece.target_offset * words,
        *(extent for extent, _, _ in padded),
        *(step for _, step, _ in padded),
        *(step for _, _, step in padded),
        rows,
        source_row,
        target_row,
        run,
        per_unit,
        piece.source,
    )
