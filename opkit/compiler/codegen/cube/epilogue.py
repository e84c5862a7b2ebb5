"""Vector cores that finish the blocks which cube cores hand over: one kernel for a product and what follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opkit.chips import Chip

from ...ir import Graph, GraphError, Node, Tensor
from ...passes import Domain, FusedGraph, Group, domain_of
from ..launch_numbers import Term, both, choose, divide_up, least, most, named
from ..text import Text, identifier
from ..vector import (
    LARGEST_REPEAT,
    DoesNotFit,
    KernelWriter,
    Plan,
    TilingField,
    TilingLayout,
    Value,
    cpp_type,
    layout_of,
    lower_group,
    plan_memory,
    row_stride,
    row_unit,
    tile_for,
)
from .blocks import BEGUN, FREE, READY, SLOTS, BlockProduct, write_blocks
from .cutting import BLOCK_FIELDS, Cut
from .entry import Work

__all__ = [
    "Epilogue",
    "epilogue_of",
    "epilogue_values",
    "most_slots",
    "write_epilogue",
]

_SLOT_FIELDS = (
    ("slotColumns", "int64_t", "elements from row to row of a part that is handed over"),
    ("slotLength", "int64_t", "elements of such a part"),
    ("scratchLength", "int64_t", "elements from one value of a tile to the next: in other banks"),
)
_PARTS = 3
"""Most parts of a block's columns; what is prepared for each part has its own room."""


@dataclass(frozen=True)
class Epilogue:
    """The vector half of a mixed kernel, through the compiler's stages."""

    fused: FusedGraph
    """The nodes after the product, as a program of their own: the product is an input."""
    domain: Domain
    plan: Plan
    layout: TilingLayout
    stems: Mapping[str, str]
    product: str
    """The product's tensor."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The tensors behind the kernel's addresses after both matrices: the product's stands for the slots."""
        program = self.plan.program
        return tuple(t.name for t in (*program.inputs, *(tensor for tensor, _ in program.outputs)))


def epilogue_of(fused: FusedGraph, group: Group, sums: str, biased: Node | None = None) -> Epilogue:
    """Return the vector half of a group that begins with a product.

    Args:
        fused: the whole program.
        group: a product and the element-wise nodes that follow it.
        sums: the data type in which the cube hands over.
        biased: the node that adds what the cube's sums begin with.
    """
    graph = fused.graph
    product, *nodes = group.nodes
    if biased is not None:
        product = biased
        nodes.remove(biased)
    names: dict[str, None] = {}
    defined = {node.output.name for node in nodes}
    for node in nodes:
        names |= dict.fromkeys(
            n for n in node.inputs if n not in defined and n not in fused.uniform
        )
    inputs = []
    for name in names:
        tensor = graph.tensors[name]
        if name == product.output.name:
            tensor = Tensor(name, tensor.shape, sums)
        inputs.append(tensor)
    known = {tensor: output for output, tensor in graph.outputs}
    outputs = tuple((known.get(name, name), name) for name in fused.outputs_of(group))
    uniform = (n for n in graph.nodes if n.output.name in fused.uniform)
    own = Graph(group.name, tuple(inputs), (*uniform, *nodes), outputs, graph.attributes)
    part = FusedGraph(own, (Group(group.name, "vector", tuple(nodes)),))
    domain = domain_of(own, nodes, keeps_matrices=True)
    program = lower_group(part, part.groups[0], domain, "blocks")
    for tensor, value in program.outputs:
        if value.space != "tile":
            raise GraphError(
                f'"{tensor.name}" does not have an element for each of the product\'s',
                location=nodes[-1].location,
            )
    plan = plan_memory(program)
    stems: dict[str, str] = {}
    for tensor in (*program.inputs, *(t for t, _ in program.outputs)):
        wanted = identifier(known.get(tensor.name, tensor.name))
        wanted = "product" if tensor.name == product.output.name else wanted
        while wanted in stems.values() or wanted in ("left", "right", "bias"):
            wanted += "Out"
        stems[tensor.name] = wanted
    lead = [TilingField(n, kind, note) for n, kind, note in (*BLOCK_FIELDS, *_SLOT_FIELDS)]
    layout = layout_of(plan, stems, lead)
    return Epilogue(part, domain, plan, layout, stems, product.output.name)


def write_epilogue(
    declaration: Text, out: Text, product: BlockProduct, epilogue: Epilogue, cube: Text
) -> tuple[Work, Work]:
    """Write the tiling structure and both classes of a mixed kernel; return what cube cores and
    what vector cores run.

    Args:
        declaration: where the structure goes.
        out: where the classes go.
        product: the cube's half.
        epilogue: the vector cores' half.
        cube: the cube cores' class.
    """
    writer = _BlockWriter(product, epilogue)
    fields = [(f.name, f.cpp_type, f.note) for f in epilogue.layout.fields]
    write_blocks(declaration, out, product, fields, hands_over=True)
    out.extend(cube)
    out()
    out(
        "// A vector core finishes half of the rows of what its cube core hands over, part by part."
    )
    writer.write_class()
    out.extend(writer.out)
    stems = [epilogue.stems[name] for name in epilogue.arguments]
    bias = () if product.bias is None else ("bias",)
    return (
        Work(product.cube_class, ("left", "right", *bias, epilogue.stems[epilogue.product])),
        Work(writer.class_name, ("left", "right", *stems)),
    )


def epilogue_values(epilogue: Epilogue, cut: Cut, chip: Chip) -> tuple[Any, dict[str, Any]]:
    """Return the elements of all slots together, and the members of the tiling data but for the
    tensors' sizes and the numbers of a launch; as terms of a host's C++, `rowsPerTile` is 0 where
    not even a row fits.

    Raises:
        DoesNotFit: of a known cut not even eight rows of a part fit the unified buffer.
    """
    blocks = cut.values()
    most_rows = named("mostRows", cut.most_rows)
    most_columns = named("mostColumns", cut.most_columns)
    slot_columns = named("slotColumns", divide_up(most_columns, 32) * 16)
    slot_length = named("slotLength", divide_up(most_rows * slot_columns, 128) * 128)
    values: dict[str, Any] = dict(zip((f[0] for f in BLOCK_FIELDS), blocks, strict=True))
    stride = named("stride", row_stride(epilogue.plan, slot_columns))
    plan = epilogue.plan
    if _prepares_ahead(plan):
        plan = replace(plan, counts={**plan.counts, "column": _PARTS * plan.counts["column"]})
    room = tile_for(plan, chip, slot_columns)
    # Two tiles at least, so that one comes while the other computes.
    rows = least(LARGEST_REPEAT, room // stride, most(8, divide_up(most_rows, 4)))
    rows = named("rowsPerTile", rows)
    tile = named("tileLength", divide_up(rows * stride, 256) * 256)
    # Values lie at the ends of equal shares of what the queues leave: in other banks than these.
    count = most(plan.counts["scratch"], 1)
    spare = (room - tile) * plan.moved_bytes(plan.buffers) // 4
    scratch = named("scratchLength", (room + spare // count) // 256 * 256 + 64)
    fits = both(stride <= 2040, rows >= divide_up(stride, 64))
    if not isinstance(rows, Term) and rows == 0:
        raise DoesNotFit(
            f"a row of {slot_columns} elements of what follows the product takes more than"
            f" the {chip.count('memory.ub_bytes')} bytes of UB",
            help="return fewer values at once, or split the program",
        )
    return cut.cores * SLOTS * slot_length, values | {
        "slotColumns": slot_columns,
        "slotLength": slot_length,
        "columns": cut.shape.n,
        "partLength": stride,
        "unit": max(8, row_unit(epilogue.plan)),
        "rowsPerTile": rows,
        "tileLength": tile,
        "scratchLength": scratch,
        "byChunk": choose(fits, 1, 0),
    }


def most_slots(chip: Chip) -> int:
    """Return how many elements the slots of a launch have at most: a block's sums fill L0C, and half
    of its columns, rounded up, are a part of it."""
    half = chip.count("memory.l0c_bytes") // 4 // 2
    return chip.count("cores.aic") * SLOTS * (half + 16 * 256)


def _prepares_ahead(plan: Plan) -> bool:
    """Return whether what is prepared for a part of a block lies in slots of its columns."""
    first, *others = plan.program.sections
    made = {step.target.number for step in first.steps}
    kept = {
        each.number
        for section in others
        for step in section.steps
        for each in step.sources
        if isinstance(each, Value) and each.number in made
    }
    return bool(kept) and all(plan.places[number].area == "column" for number in kept)


class _BlockWriter(KernelWriter):
    """A kernel that takes its tiles from the slots of a cube core."""

    def __init__(self, product: BlockProduct, epilogue: Epilogue) -> None:
        super().__init__(product.name, epilogue.fused.graph, epilogue.plan, epilogue.layout)
        self.block = product
        self.stems = dict(epilogue.stems)
        self.product = epilogue.product
        self.class_of = f"Kernel{product.stem}Vector"

    @property
    def class_name(self) -> str:
        return self.class_of

    @property
    def base_class(self) -> str:
        return " : Blocks"

    @property
    def rows_down(self) -> Sequence[str]:
        return _ROWS_AT.strip().splitlines()

    def init_share(self) -> None:
        kind = self.block.operand
        for side in ("left", "right"):
            self.out(f"{side}Global.SetGlobalBuffer(reinterpret_cast<__gm__ {kind}*>({side}));")

    @property
    def waits_for_cube(self) -> bool:
        """Whether the cube core says that its first chunk has come; a Matmul object cannot."""
        return self.block.is_blocked

    @property
    def prepares_ahead(self) -> bool:
        """Whether what each part of a block needs is there before the first is handed over."""
        return _prepares_ahead(self.plan)

    @property
    def slot_length(self) -> str:
        return "tiling.scratchLength"

    @property
    def first_slot(self) -> str:
        gap = "" if self.plan.is_shifted else " - 64"
        return f"[tiling.scratchLength - tiling.tileLength{gap}]"

    @property
    def small_buffers(self) -> list[tuple[str, str, int]]:
        sets = _PARTS if self.prepares_ahead else 1
        return [
            (area, size, total * sets if area == "column" else total)
            for area, size, total in super().small_buffers
        ]

    @property
    def parameters(self) -> list[str]:
        return ["left", "right", *super().parameters]

    def fetch(self) -> None:
        """Write how vector cores bring what their cube core reads next into L2."""
        out = self.out
        out(
            "// Vector cores have time: they bring what cube cores read next from memory into L2, each a share of the"
        )
        out("// rows and columns that several blocks have in common.")
        out("__aicore__ inline void Fetch(int64_t index, int64_t begin)")
        out("{")
        out("const uint32_t sub = GetSubBlockIdx();")
        out("if (index >= tiling.blocks) {")
        out("return;")
        out("}")
        out("const Block block = BlockAt(index);")
        out("const uint32_t down = (GetBlockNum() + block.wide - 1) / block.wide;")
        out("const uint32_t above = index % GetBlockNum() / block.wide;")
        out("const int64_t before = index - GetBlockNum();")
        out(
            "const bool hasColumns = before >= 0 && BlockAt(before).column == block.column && BlockAt(before).batch == block.batch;"
        )
        if not self.block.transpose_right:
            out("const Block first = BlockAt(index - block.place);")
            out("const Block last = BlockAt(index - block.place + block.wide - 1);")
            out("const uint32_t width = last.column + last.columns - first.column;")
        chunk = self.block.chunk
        out(f"for (int64_t k = begin; k < tiling.k; k += {chunk} - k % {chunk}) {{")
        out(f"const uint32_t depth = Shorter(tiling.k - k, {chunk} - k % {chunk});")
        for side, first, extent, cores, place, all_of in (
            ("left", "block.row", "block.rows", "block.wide", "block.place", "tiling.m"),
            ("right", "block.column", "block.columns", "down", "above", "tiling.n"),
        ):
            turned = self.block.transpose_left if side == "left" else self.block.transpose_right
            at = f"block.batch * tiling.batch{side.title()}"
            if (side == "left") == turned:
                at += f" + k * {all_of} + {first}"
                shape = f"depth, {extent}, {all_of}"
            else:
                at += f" + {first} * tiling.k + k"
                shape = f"{extent}, depth, tiling.k"
            shares = f"2 * {cores}, 2 * {place} + sub"
            if side == "right":
                out("if (!hasColumns) {")
                if not turned:
                    # Blocks beside each other have longer rows together.
                    at = at.replace("block.column", "first.column")
                    shape = shape.replace("block.columns", "width")
                    shares = "2 * down * block.wide, 2 * (above * block.wide + block.place) + sub"
            out(f"Touch({side}Global[{at}], {shape}, {shares});")
            if side == "right":
                out("}")
        out("}")
        out("}")
        out()
        room = f"({self.queue_bytes(self.input_segments)})"
        kind = self.block.operand
        text = _TOUCH.replace("TYPE", kind).replace("ROOM", f"{room} / sizeof({kind})")
        text = text.replace("LAST", str(self.block.lane - 1)).replace("LANE", str(self.block.lane))
        out.all(text.strip().splitlines())
        out()

    def own_members(self) -> None:
        kind = self.block.operand
        self.out(f"GlobalTensor<{kind}> leftGlobal;")
        self.out(f"GlobalTensor<{kind}> rightGlobal;")
        self.out("int64_t partRow = 0;  // the first row of the part at hand")
        self.out("int64_t slot = 0;  // where the part at hand begins")
        self.out("uint32_t taken = 0;")

    def process(self) -> None:
        out = self.out
        begun = f"CrossCoreWaitFlag<2, PIPE_MTE2>({BEGUN});" if self.waits_for_cube else ""
        prepare = _PREPARE if self.prepares_ahead else ""
        text = (
            _PROCESS.replace("BEGUN", begun)
            .replace("PREPARE", prepare)
            .replace("HALF", str(self.block.chunk // 2))
        )
        out.all(line for line in text.strip().splitlines() if line)
        out()

    def part(self) -> None:
        """Write what is done with one part of a block."""
        out = self.out
        out("// What follows is about some of a block's columns.")
        out("__aicore__ inline void Choose(const Block& block, uint32_t begin, uint32_t end)")
        out("{")
        out("batch = block.batch;")
        out("column = block.column + begin;")
        out("columns = end - begin;")
        out("stride = (columns + tiling.unit - 1) / tiling.unit * tiling.unit;")
        if self.prepares_ahead:
            room = f"{self.plan.counts['column']} * {self.column_room}"
            out("const uint32_t part = begin == 0 ? 0 : end < block.columns ? 1 : 2;")
            out(f"columnSlots = columnBuffer.Get<float>()[part * {room}];")
        out("}")
        out()
        out("__aicore__ inline void Part(const Block& block, uint32_t begin, uint32_t end)")
        out("{")
        out("Choose(block, begin, end);")
        if self.prepares and not self.prepares_ahead:
            out("Prepare(0);")
        out(f"CrossCoreWaitFlag<2, PIPE_MTE2>({READY});")
        out(f"const int64_t own = GetBlockIdx() / GetSubBlockNum() * {SLOTS};")
        out(f"slot = (own + taken++ % {SLOTS}) * tiling.slotLength;")
        out("partRow = block.row;")
        out("const uint32_t upper = (block.rows + 1) / 2;")
        out("firstRow = block.row + (GetSubBlockIdx() == 0 ? 0 : upper);")
        out("lastRow = GetSubBlockIdx() == 0 ? block.row + upper : block.row + block.rows;")
        out("if (firstRow < lastRow) {")
        out("CopyIn(firstRow, RowsAt(firstRow));")
        out("}")
        out("for (int64_t row = firstRow; row < lastRow;) {")
        out("const uint32_t rows = RowsAt(row);")
        out("if (row + rows < lastRow) {")
        out("CopyIn(row + rows, RowsAt(row + rows));")
        out("}")
        name = self.pass_name(self.last_pass)
        out(f"Compute{name}(rows, row == firstRow);")
        out("CopyOut(row, rows);")
        out("row += rows;")
        out("}")
        out(f"CrossCoreSetFlag<2, PIPE_MTE2>({FREE});")
        out("}")
        out()

    def copy(
        self,
        tensor: Tensor,
        segments: Sequence[tuple[str, int, bool]],
        queue: str,
        is_row: bool,
        *,
        is_in: bool,
    ) -> None:
        if tensor.name != self.product:
            super().copy(tensor, segments, queue, is_row, is_in=is_in)
            return
        at = self.segment(segments, tensor.name)
        local = f"{queue}[{at}]" if at != "0" else queue
        stem = self.stems[tensor.name]
        self.out(
            f"LoadPart({local}.ReinterpretCast<{cpp_type(tensor.dtype)}>(),"
            f" {stem}Global[slot + (row - partRow) * tiling.slotColumns], rows);"
        )

    def helpers(self) -> None:
        self.part()
        self.fetch()
        super().helpers()
        self.out.all(_LOAD_PART.strip().splitlines())
        self.out()


_PROCESS = """
__aicore__ inline void Process()
{
const int64_t group = GetBlockIdx() / GetSubBlockNum();
if (group >= tiling.blocks) {
return;
}
BEGUN
// Half a chunk the cube cores bring themselves.
Fetch(group, HALF);
Fetch(group + GetBlockNum(), 0);
for (int64_t index = group; index < tiling.blocks; index += GetBlockNum()) {
Fetch(index + 2 * GetBlockNum(), 0);
const Block block = BlockAt(index);
const bool isFinal = IsFinal(index);
PREPARE
for (uint32_t begin = 0; begin < block.columns; begin = PartEnd(begin, block.columns, isFinal)) {
Part(block, begin, PartEnd(begin, block.columns, isFinal));
}
}
}
"""

_PREPARE = """// While the cube core multiplies: nothing of it is waited for between two parts.
for (uint32_t begin = 0; begin < block.columns; begin = PartEnd(begin, block.columns, isFinal)) {
Choose(block, begin, PartEnd(begin, block.columns, isFinal));
Prepare(0);
}"""

_ROWS_AT = """
// Rows of the tile that begins at a row.
__aicore__ inline uint32_t RowsAt(int64_t row)
{
const int64_t rest = lastRow - row;
const uint32_t most = tiling.tileLength / stride;
return rest < most ? static_cast<uint32_t>(rest) : most;
}

"""

_LOAD_PART = """
// Rows of a part that the cube core has handed over.
template <typename T>
__aicore__ inline void LoadPart(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t rows)
{
const uint32_t bytes = columns * sizeof(T);
const uint32_t skipped = (tiling.slotColumns - columns) * sizeof(T);
const uint32_t gap = stride * sizeof(T) / 32 - (bytes + 31) / 32;
DataCopyPad(to, from, DataCopyExtParams{static_cast<uint16_t>(rows), bytes, skipped, gap, 0}, DataCopyPadExtParams<T>());
}
"""

_TOUCH = """
// One share of some rows is read, and forgotten.
__aicore__ inline void Touch(const GlobalTensor<TYPE>& from, uint32_t rows, uint32_t length, int64_t step, uint32_t shares, uint32_t share)
{
const uint32_t each = (rows + shares - 1) / shares;
const uint32_t first = share * each;
if (first >= rows) {
return;
}
uint32_t count = rows - first < each ? rows - first : each;
const uint32_t most = ROOM / ((length + LAST) / LANE * LANE);
count = count < most ? count : most;
if (count == 0) {
return;
}
LocalTensor<TYPE> room = inputQueue.AllocTensor<TYPE>();
const uint32_t bytes = length * sizeof(TYPE);
const uint32_t skipped = static_cast<uint32_t>((step - length) * sizeof(TYPE));
DataCopyPad(room, from[first * step], DataCopyExtParams{static_cast<uint16_t>(count), bytes, skipped, 0, 0}, DataCopyPadExtParams<TYPE>());
inputQueue.EnQue<TYPE>(room);
room = inputQueue.DeQue<TYPE>();
inputQueue.FreeTensor(room);
}
"""
