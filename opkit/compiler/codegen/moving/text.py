"""The kernel that copies boxes, one for every element size and number of inputs, and its tiling
data."""

from __future__ import annotations

from ...ir import Location
from ..kernel_class import KernelClass, class_of, struct_of
from ..text import Text
from .boxes import BUFFER_BYTES, MOST_OUTER, word_bytes

__all__ = ["write_copy"]

_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t"}


def write_copy(
    name: str,
    inputs: int,
    pieces: int,
    size_bytes: int,
    location: Location | None = None,
    outer: int = MOST_OUTER,
) -> KernelClass:
    """Return a kernel that copies `pieces` boxes from `inputs` tensors, as the user's line asks
    for; a box has `outer` axes beside its rows."""
    kind = _TYPES[word_bytes(size_bytes)]
    struct_name, class_name = struct_of(name), class_of(name)
    box = struct_name.removesuffix("Tiling") + "Box"
    axes = [
        f"int64_t extents[{outer}];",
        f"int64_t sourceSteps[{outer}];",
        f"int64_t targetSteps[{outer}];",
    ]
    declaration = Text()
    declaration.all(
        [
            "// A box: rows of elements that lie together"
            + (f", within {outer} more axes." if outer else "."),
            f"struct {box} {{",
            "int64_t units;  // how often a buffer is filled",
            "int64_t source;  // where it begins",
            "int64_t target;",
            *(axes if outer else []),
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
            f"{box} boxes[{pieces}];",
            "};",
        ]
    )
    out = Text()
    names = (*(f"x{i}" for i in range(inputs)), "y")
    out("// Rows go through a buffer: a copy takes as many as fit, with the gaps on each side.")
    out(f"class {class_name} {{")
    out("public:")
    parameters = ", ".join(f"GM_ADDR {each}" for each in names)
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
    walk = [
        f"for (int32_t axis = {outer - 1}; axis >= 0; --axis) {{",
        "source += index % box.extents[axis] * box.sourceSteps[axis];",
        "target += index % box.extents[axis] * box.targetSteps[axis];",
        "index /= box.extents[axis];",
        "}",
    ]
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
            f"const {box}& box = tiling.boxes[index];",
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
            f"__aicore__ inline void Move(const {box}& box, int64_t unit)",
            "{",
            "const int64_t unitsPerIndex = (box.rows + box.rowsPerUnit - 1) / box.rowsPerUnit;",
            "const int64_t row = unit % unitsPerIndex * box.rowsPerUnit;",
            *(["int64_t index = unit / unitsPerIndex;"] if outer else []),
            "int64_t source = box.source + row * box.sourceRow;",
            "int64_t target = box.target + row * box.targetRow;",
            *(walk if outer else []),
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
            f"static constexpr uint32_t BUFFER_BYTES = {BUFFER_BYTES};",
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
        ]
    )
    out.mark(location, "DataCopyPad(")
    return KernelClass(name, class_name, struct_name, declaration, out, names)
