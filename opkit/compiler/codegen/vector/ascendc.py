"""A planned vector kernel as Ascend C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Graph, Tensor
from ..kernel_class import KernelClass, struct_of
from ..text import Text, identifier, upper
from .helpers import HELPERS, SLOT_LENGTH, needed_helpers
from .slots import ONE_CAPACITY, ROW_CAPACITY, Plan
from .statements import StatementWriter, slots, times
from .steps import Program, Section, Value
from .tiling import TilingLayout

__all__ = ["KernelText", "KernelWriter", "write_kernel"]

_BLOCK_ROWS = 8
"""Rows' room of the numbers that are spread over blocks: 32 bytes for each row."""


@dataclass(frozen=True)
class KernelText:
    """One kernel's source and how it is called."""

    name: str
    text: Text
    arguments: tuple[str, ...]
    """The tensors behind its GM addresses, in order; its tiling data comes last, by value."""
    parameters: tuple[str, ...]
    """Those addresses' names."""
    body: Text
    """The text without its entry point, for kernels that are more than this."""
    declaration: Text
    """The structure of its tiling data; the text and the body begin with it."""
    definition: Text
    """Its class; the body ends with it."""
    class_name: str
    struct: str
    """The name of its tiling data's type."""
    type_tensors: tuple[str, ...] = ()
    """The tensors whose data types are the class's parameters."""

    @property
    def as_class(self) -> KernelClass:
        """The kernel without its entry point."""
        return KernelClass(
            *(self.name, self.class_name, self.struct, self.declaration, self.definition),
            self.parameters,
        )


def write_kernel(name: str, graph: Graph, plan: Plan, layout: TilingLayout) -> KernelText:
    """Return a kernel's class, tiling structure and entry point."""
    return KernelWriter(name, graph, plan, layout).write()


class KernelWriter(StatementWriter):
    """Writes a kernel's parts one after another."""

    def __init__(self, name: str, graph: Graph, plan: Plan, layout: TilingLayout) -> None:
        self.name = name
        self.graph = graph
        self.plan = plan
        self.program: Program = plan.program
        self.domain = plan.program.domain
        self.layout = layout
        self.out = Text()
        self.known_uses = {}
        self.inputs = list(self.program.inputs)
        self.outputs = [tensor for tensor, _ in self.program.outputs]
        self.stems = self._stems()
        self.by_rows = self.program.schedule == "rows"
        self.down = self.program.schedule in ("down", "blocks")
        self.column_room = "(tiling.partLength + 64)" if self.down else "(tiling.stride + 64)"
        self.compares = any(
            s.operation in ("Compare", "CompareScalar")
            for sec in self.program.sections
            for s in sec.steps
        )
        self.has_batches = bool(self.domain.batches)
        self.values = {
            v.number: v for sec in self.program.sections for s in sec.steps for v in (s.target,)
        }

    def _stems(self) -> dict[str, str]:
        found: dict[str, str] = {}
        names = {tensor: name for name, tensor in self.graph.outputs}
        for tensor in [*self.inputs, *self.outputs]:
            wanted = identifier(names.get(tensor.name, tensor.name))
            while wanted in found.values():
                wanted += "Out"
            found[tensor.name] = wanted
        return found

    @property
    def kept_space(self) -> str:
        """The space of what a pass leaves for the next."""
        return "column" if self.down else "one"

    # The file

    def write(self) -> KernelText:
        self.write_struct()
        declaration, self.out = self.out, Text()
        self.comment()
        self.write_class()
        definition, self.out = self.out, Text()
        self.out.extend(declaration)
        self.out.extend(definition)
        body = Text()
        body.extend(self.out)
        self.write_entry()
        arguments = tuple(tensor.name for tensor in self.tensors)
        return KernelText(
            *(self.name, self.out, arguments, tuple(self.parameters), body),
            declaration=declaration,
            definition=definition,
            class_name=self.class_name,
            struct=self.struct,
            type_tensors=self.type_tensors,
        )

    def write_struct(self) -> None:
        out = self.out
        out(
            f"// How {self.name} is split over cores and tiles: written by the"
            " host for each launch."
        )
        out(f"struct {self.struct} {{")
        for field in self.layout.fields:
            note = f"  // {field.note}" if field.note else ""
            out(f"{field.cpp_type} {field.name};{note}")
        out("};")
        out()

    def write_class(self) -> None:
        out = self.out
        if self.class_parameters:
            listed = ", ".join(f"typename {each}" for each in self.class_parameters)
            out(f"template <{listed}>")
        out(f"class {self.class_name}{self.base_class} {{")
        out("public:")
        self.own_types()
        self.init()
        self.process()
        out("private:")
        if self.program.sections[0].steps:
            self.prepare()
        self.copy_in()
        for index, section in enumerate(self.program.sections):
            if section.name == "tile":
                self.compute(index, section)
            elif section.name == "finish" and self.finishes(index, section):
                self.finish(index, section)
        self.copy_out()
        self.helpers()
        self.members()
        out("};")
        out()

    def write_entry(self) -> None:
        out = self.out
        parameters = ", ".join(f"GM_ADDR {self.stems[t.name]}" for t in self.tensors)
        out(
            f'extern "C" __global__ __aicore__ void {self.name}({parameters}, {self.struct} tiling)'
        )
        out("{")
        out(f"{self.class_name} op;")
        out(f"op.Init({', '.join(self.stems[t.name] for t in self.tensors)}, tiling);")
        out("op.Process();")
        out("}")

    @property
    def tensors(self) -> list[Tensor]:
        return [*self.inputs, *self.outputs]

    @property
    def parameters(self) -> list[str]:
        """The names of the class's addresses."""
        return [self.stems[tensor.name] for tensor in self.tensors]

    @property
    def class_parameters(self) -> Sequence[str]:
        """The type parameters of the class."""
        return ()

    @property
    def type_tensors(self) -> tuple[str, ...]:
        """A tensor of each of them."""
        return ()

    def own_types(self) -> None:
        """Write the types that the class names."""

    @property
    def base_class(self) -> str:
        """What follows the class's name."""
        return ""

    @property
    def rows_down(self) -> Sequence[str]:
        """The function that says how many rows a tile has."""
        return HELPERS["RowsDown"]

    @property
    def class_name(self) -> str:
        return "Kernel" + upper(identifier(self.name))

    @property
    def struct(self) -> str:
        return struct_of(self.name)

    def comment(self) -> None:
        ahead = " The next tile is copied in while this one computes."
        ahead = ahead if self.input_segments else ""
        if self.by_rows:
            self.out(f"// A core takes a range of rows, some whole rows a tile.{ahead}")
        elif self.reduces:
            self.out(
                "// A core takes a range of rows; a row comes in parts, as"
                " often as its reductions ask for."
            )
            if ahead:
                self.out(f"//{ahead}")
        else:
            self.out(f"// A core takes a range of tiles.{ahead}")

    @property
    def by_lines(self) -> bool:
        """Whether a copy takes elements that lie behind one another."""
        return not (self.by_rows or self.down or self.layout.copies_blocks)

    @property
    def reduces(self) -> bool:
        return len(self.program.passes) > 1 or any(
            s.operation == "Accumulate" for sec in self.program.sections for s in sec.steps
        )

    # Init

    def init(self) -> None:
        out = self.out
        parameters = ", ".join(f"GM_ADDR {name}" for name in self.parameters)
        out(f"__aicore__ inline void Init({parameters}, const {self.struct}& given)")
        out("{")
        out("tiling = given;")
        self.init_share()
        self.begin()
        for tensor in self.tensors:
            stem, kind = self.stems[tensor.name], self.type_of(tensor)
            out(
                f"{stem}Global.SetGlobalBuffer(reinterpret_cast<__gm__ {kind}*>({stem}),"
                f" tiling.{stem}Size);"
            )
        if self.input_segments:
            out(f"pipe.InitBuffer(inputQueue, BUFFERS, {self.queue_bytes(self.input_segments)});")
        if self.output_segments:
            out(f"pipe.InitBuffer(outputQueue, BUFFERS, {self.queue_bytes(self.output_segments)});")
        counts = self.plan.counts
        if self.layout.has_gap and self.input_segments:
            out("ClearInput();")
        if self.clears_output:
            out("ClearOutput();")
        if self.works:
            out("pipe.InitBuffer(workBuffer, tiling.workLength * sizeof(float));")
            out("work = workBuffer.Get<float>();")
        if counts["scratch"]:
            length = times(counts["scratch"], "SlotLength()")
            out(f"pipe.InitBuffer(scratchBuffer, {length} * sizeof(float));")
            out(f"scratch = scratchBuffer.Get<float>(){self.first_slot};")
            if self.compares:
                # Comparisons read whole repeats: past a short tile they must meet defined values.
                whole = "scratchBuffer.Get<float>()" if self.first_slot else "scratch"
                out(f"Duplicate({whole}, 0.0f, {length});")
        if counts["mask"]:
            out(f"pipe.InitBuffer(maskBuffer, {times(counts['mask'], 'MaskBytes()')});")
            out("masks = maskBuffer.Get<uint8_t>();")
        for area, size, total in self.small_buffers:
            length = times(total + self.blocks_behind(area), size)
            out(f"pipe.InitBuffer({area}Buffer, {length} * sizeof(float));")
            out(f"{slots(area)} = {area}Buffer.Get<float>();")
            if self.blocks_behind(area):
                out(f"blocks = {slots(area)}[{times(total, size)}];")
        for area, size, total in self.small_buffers:
            # Instructions over whole repeats meet defined values past the last row.
            length = times(total + self.blocks_behind(area), size)
            out(f"Duplicate({slots(area)}, 0.0f, {length});")
        self.fill_constants()
        out("}")
        out()

    def fill_constants(self) -> None:
        """Write what fills the slots of known numbers."""
        filled: set[str] = set()
        for section in self.program.sections:
            for step in section.steps:
                if step.target.number not in self.plan.constants:
                    continue
                is_row = step.target.space == "row"
                size = str(ROW_CAPACITY) if is_row else "SlotLength()"
                number = self.operand(step.sources[0], step.target.kind, section)
                text = f"Duplicate({self.address(step.target)}, {number}, {size});"
                if text not in filled:
                    self.out(text)
                    filled.add(text)

    def begin(self) -> None:
        """Write what follows from the core's share."""
        if self.by_rows:
            self.out("columns = tiling.columns;")
            self.out("stride = tiling.stride;")

    @property
    def clears_output(self) -> bool:
        """Whether whole repeats are read of an output of which only rows are written."""
        places = self.plan.places
        written = {
            step.target.number
            for section in self.program.sections
            for step in section.steps
            if any(isinstance(each, Value) and each.space != "tile" for each in step.sources)
            and step.target.space == "tile"
            and places[step.target.number].area == "output"
        }
        read = {
            each.number
            for section in self.program.sections
            for step in section.steps
            for each in step.sources
            if isinstance(each, Value)
        }
        return self.compares and bool(written & read)

    def init_share(self) -> None:
        """Write which rows or tiles are the core's."""
        out = self.out
        unit = "Row" if self.by_rows or self.down or self.reduces else "Tile"
        out("const int64_t block = GetBlockIdx();")
        out("const int64_t extra = tiling.extra;")
        out(f"first{unit} = block * tiling.perBlock + (block < extra ? block : extra);")
        out(f"last{unit} = first{unit} + tiling.perBlock + (block < extra ? 1 : 0);")

    @property
    def small_buffers(self) -> list[tuple[str, str, int]]:
        counts = self.plan.counts
        found = []
        if counts["row"]:
            found.append(("row", str(ROW_CAPACITY), counts["row"]))
        if counts["one"]:
            found.append(("one", str(ONE_CAPACITY), counts["one"]))
        if counts["column"]:
            found.append(("column", self.column_room, counts["column"]))
        if "blocks" in self.helper_needs and not counts["row"]:
            found.append(("block", str(ROW_CAPACITY), _BLOCK_ROWS))
        return found

    def blocks_behind(self, area: str) -> int:
        """Return how many rows' room the blocks take that lie behind an area."""
        return _BLOCK_ROWS if area == "row" and "blocks" in self.helper_needs else 0

    @property
    def works(self) -> bool:
        return self.plan.reduces_rows and not self.down

    @property
    def helper_needs(self) -> frozenset[str]:
        return needed_helpers(self.program, copies_blocks=self.layout.copies_blocks)

    # Process

    def process(self) -> None:
        out = self.out
        out("__aicore__ inline void Process()")
        out("{")
        if self.by_rows:
            self.process_rows()
        elif self.down:
            self.process_down()
        elif self.reduces:
            self.process_passes()
        else:
            self.process_parts()
        out("}")
        out()

    @property
    def prepares(self) -> bool:
        return bool(self.program.sections[0].steps)

    @property
    def prepare_per_batch(self) -> bool:
        loads = [s.mode for s in self.program.sections[0].steps if s.operation == "Load"]
        return any(any(self.domain.varies[name][:-2]) for name in loads)

    def process_rows(self) -> None:
        out = self.out
        out("if (firstRow == lastRow) {")
        out("return;")
        out("}")
        if self.prepares and not self.prepare_per_batch:
            out("Prepare(0);")
        if self.input_segments:
            out("CopyIn(firstRow, RowsAt(firstRow));")
        if self.prepares and self.prepare_per_batch:
            out("int64_t prepared = -1;")
        out("for (int64_t row = firstRow; row < lastRow;) {")
        out("const uint32_t rows = RowsAt(row);")
        if self.input_segments:
            out("if (row + rows < lastRow) {")
            out("CopyIn(row + rows, RowsAt(row + rows));")
            out("}")
        if self.prepares and self.prepare_per_batch:
            out("if (row / tiling.rowsPerBatch != prepared) {")
            out("prepared = row / tiling.rowsPerBatch;")
            out("Prepare(row);")
            out("}")
        out("Compute(rows);")
        out("CopyOut(row, rows);")
        out("row += rows;")
        out("}")

    def process_parts(self) -> None:
        out = self.out
        if self.input_segments:
            out("CopyIn(firstTile);")
        if self.prepares:
            out("int64_t prepared = -1;")
        out("for (int64_t tile = firstTile; tile < lastTile; ++tile) {")
        if self.input_segments:
            out("CopyIn(tile + 1);")
        if self.prepares:
            out("if (tile / tiling.partsPerRow != prepared) {")
            out("prepared = tile / tiling.partsPerRow;")
            out("Prepare(prepared);")
            out("}")
        out("Compute(CountOf(tile));")
        out("CopyOut(tile);")
        out("}")

    def process_passes(self) -> None:
        out = self.out
        out("for (int64_t row = firstRow; row < lastRow; ++row) {")
        if self.prepares:
            out("Prepare(row);")
        out("const int64_t firstTile = row * tiling.partsPerRow;")
        out("const int64_t lastTile = firstTile + tiling.partsPerRow;")
        for index, section in enumerate(self.program.sections):
            if section.name == "tile" and section.steps:
                name = self.pass_name(index)
                stores = index == self.last_pass and bool(self.output_segments)
                if self.input_segments:
                    out("CopyIn(firstTile);")
                out("for (int64_t tile = firstTile; tile < lastTile; ++tile) {")
                if self.input_segments:
                    out("if (tile + 1 < lastTile) {")
                    out("CopyIn(tile + 1);")
                    out("}")
                out(f"Compute{name}(CountOf(tile), tile == firstTile);")
                if stores:
                    out("CopyOut(tile);")
                out("}")
            elif section.name == "finish" and self.finishes(index, section):
                out(f"Finish{self.pass_name(index - 1)}(row);")
        out("}")

    def process_down(self) -> None:
        out = self.out
        out("for (int64_t unit = firstRow; unit < lastRow; ++unit) {")
        out("batch = unit / tiling.partsPerRow;")
        out("column = unit % tiling.partsPerRow * tiling.partLength;")
        out("const int64_t rest = tiling.columns - column;")
        out("columns = rest < tiling.partLength ? static_cast<uint32_t>(rest) : tiling.partLength;")
        out("stride = (columns + tiling.unit - 1) / tiling.unit * tiling.unit;")
        if self.prepares:
            out("Prepare(0);")
        for index, section in enumerate(self.program.sections):
            if section.name == "tile" and section.steps:
                stores = index == self.last_pass and bool(self.output_segments)
                if self.input_segments:
                    out("CopyIn(0, RowsAt(0));")
                out("for (int64_t row = 0; row < tiling.rowsPerBatch; row += tiling.rowsPerTile) {")
                out("const uint32_t rows = RowsAt(row);")
                if self.input_segments:
                    out("if (row + rows < tiling.rowsPerBatch) {")
                    out("CopyIn(row + rows, RowsAt(row + rows));")
                    out("}")
                out(f"Compute{self.pass_name(index)}(rows, row == 0);")
                if stores:
                    out("CopyOut(row, rows);")
                out("}")
            elif section.name == "finish" and self.finishes(index, section):
                out(f"Finish{self.pass_name(index - 1)}(0);")
        out("}")

    @property
    def last_pass(self) -> int:
        return max(i for i, s in enumerate(self.program.sections) if s.name == "tile")

    def pass_name(self, index: int) -> str:
        return (
            str(sum(1 for s in self.program.sections[:index] if s.name == "tile"))
            if self.reduces
            else ""
        )

    # Where tensors lie in global memory

    def offset(self, tensor: Tensor, row: str, column: str) -> str:
        """Return an element's index for a row, counted over all batches, and a column."""
        varies = self.domain.varies[tensor.name]
        by_row, by_column = varies[-2:]
        if self.down:
            return self.offset_down(tensor, row)
        single_row = self.layout.has_single_row
        parts: list[str] = []
        stem = self.stems[tensor.name]
        if tensor.name in self.domain.windows:
            return self.offset_in_window(tensor, row, column)
        if not single_row and (by_row or any(varies[:-2])):
            if all(varies[:-1]):
                step = "tiling.columns" if by_column else ""
                step = f"tiling.{stem}Step" if tensor.name in self.program.one_row else step
                parts.append(f"{row} * {step}" if step else row)
            else:
                if any(varies[:-2]):
                    parts.append(f"{upper(stem)}Batch({row} / tiling.rowsPerBatch)")
                if by_row:
                    step = " * tiling.columns" if by_column else ""
                    parts.append(f"{row} % tiling.rowsPerBatch{step}")
        if by_column and column:
            parts.append(column)
        return " + ".join(parts) or "0"

    def offset_in_window(self, tensor: Tensor, row: str, column: str) -> str:
        """Return an element's index in the tensor of which this one is a part."""
        varies = self.domain.varies[tensor.name]
        by_row, by_column = varies[-2:]
        stem = self.stems[tensor.name]
        parts = [f"tiling.{stem}Begin"]
        if any(varies[:-2]):
            batch = "batch" if self.down else f"{row} / tiling.rowsPerBatch"
            parts.append(f"{upper(stem)}Batch({batch})")
        if by_row and not self.layout.has_single_row:
            within = f"{row} % tiling.rowsPerBatch" if self.has_batches and not self.down else row
            parts.append(f"{within} * tiling.{stem}Step" if by_column else within)
        if by_column and column:
            parts.append(column)
        return " + ".join(parts)

    def offset_down(self, tensor: Tensor, row: str) -> str:
        """Return an element's index for a row of the unit's batch and its first column."""
        varies = self.domain.varies[tensor.name]
        by_row, by_column = varies[-2:]
        batched = any(varies[:-2])
        if tensor.name in self.domain.windows:
            return self.offset_in_window(tensor, row, "column")
        parts = []
        if batched:
            parts.append(f"{upper(self.stems[tensor.name])}Batch(batch)")
        if by_row:
            parts.append(f"{row} * tiling.columns" if by_column else row)
        if by_column:
            parts.append("column")
        return " + ".join(parts) or "0"

    def batch_functions(self) -> None:
        """Write how a batch's index gives a tensor's place, for those that do not vary along every
        axis."""
        out = self.out
        for tensor in self.tensors:
            varies = self.domain.varies[tensor.name]
            is_dense = tensor.name not in self.domain.windows
            if not any(varies[:-2]) or (is_dense and all(varies[:-1]) and not self.down):
                continue
            stem = self.stems[tensor.name]
            terms = []
            axes = range(len(self.domain.batches))
            for axis in axes:
                if not varies[axis]:
                    continue
                index = "batch"
                inner = [f"tiling.extent{a}" for a in axes if a > axis]
                if inner:
                    index = f"{index} / ({' * '.join(inner)})"
                if axis > 0:
                    index = f"{index} % tiling.extent{axis}"
                terms.append(f"{index} * tiling.{stem}Stride{axis}")
            out(f"__aicore__ inline int64_t {upper(stem)}Batch(int64_t batch)")
            out("{")
            out(f"return {' + '.join(terms)};")
            out("}")
            out()

    # Copies

    def copy_in(self) -> None:
        out = self.out
        if not self.input_segments:
            return
        if self.by_rows or self.down:
            out("__aicore__ inline void CopyIn(int64_t row, uint32_t rows)")
        else:
            out("__aicore__ inline void CopyIn(int64_t tile)")
        out("{")
        if self.in_tiles:
            out("if (tile >= lastTile) {")
            out("return;")
            out("}")
        if not (self.by_rows or self.down):
            self.part_position(self.input_segments)
        out("LocalTensor<uint8_t> input = inputQueue.AllocTensor<uint8_t>();")
        for name, _, is_row in self.input_segments:
            tensor = self.graph.tensors[name]
            self.copy(tensor, self.input_segments, "input", is_row, is_in=True)
        out("inputQueue.EnQue<uint8_t>(input);")
        out("}")
        out()

    def part_position(self, segments: Sequence[tuple[str, int, bool]]) -> None:
        """Name where a tile begins, and its length; a single tensor of one row says it itself."""
        out = self.out
        if self.says_tile(len(segments)):
            return
        if not self.layout.has_single_row:
            tensors = (self.graph.tensors[name] for name, _, _ in segments)
            if any("row" in re.findall(r"\w+", self.offset(each, "row", "")) for each in tensors):
                out("const int64_t row = tile / tiling.partsPerRow;")
            out("const int64_t column = tile % tiling.partsPerRow * tiling.tileLength;")
        else:
            out("const int64_t column = tile * tiling.tileLength;")
        out("const uint32_t count = CountOf(tile);")

    def says_tile(self, tensors: int) -> bool:
        """Whether so many tensors that are copied have no use for names of a tile's place."""
        return tensors == 1 and self.layout.has_single_row

    def copies_by_itself(self, segments: Sequence[tuple[str, int, bool]], *, is_in: bool) -> bool:
        """Whether the only copy of its kind calls no function."""
        is_only = self.in_tiles and self.by_lines and self.says_tile(len(segments))
        return is_only and not (is_in and self.prepares)

    @property
    def in_tiles(self) -> bool:
        """Whether a core's share is tiles, each of which is computed once."""
        return not (self.by_rows or self.down or self.reduces)

    def copy(
        self,
        tensor: Tensor,
        segments: Sequence[tuple[str, int, bool]],
        queue: str,
        is_row: bool,
        *,
        is_in: bool,
    ) -> None:
        stem, kind = self.stems[tensor.name], self.type_of(tensor)
        local = f"{queue}[{self.segment(segments, tensor.name)}].ReinterpretCast<{kind}>()"
        if self.segment(segments, tensor.name) == "0":
            local = f"{queue}.ReinterpretCast<{kind}>()"
        row, column = "row", "" if self.by_rows else "column"
        count = "count"
        if not (self.by_rows or self.down) and self.says_tile(len(segments)):
            column, count = "tile * tiling.tileLength", "CountOf(tile)"
        at = f"{stem}Global[{self.offset(tensor, row, column)}]"
        if self.copies_by_itself(segments, is_in=is_in):
            size = f"static_cast<uint32_t>({count} * sizeof({kind}))"
            self.out(f"const DataCopyExtParams copy{{1, {size}, 0, 0, 0}};")
            if is_in:
                self.out(f"DataCopyPad({local}, {at}, copy, DataCopyPadExtParams<{kind}>());")
            else:
                self.out(f"DataCopyPad({at}, {local}, copy);")
            return
        sizes = count if self.by_lines else f"1, {count}"
        if self.by_rows or self.down:
            sizes = "1, rows" if is_row else "rows, columns"
        if is_in and self.by_rows and tensor.name in self.program.one_row:
            self.out(f"LoadRows({local}, {at}, tiling.{stem}Step, row, rows);")
            return
        source, target = (at, local) if is_in else (local, at)
        if tensor.name in self.steps_over(is_in=is_in):
            name = "LoadPart" if is_in else "StorePart"
            self.out(f"{name}({target}, {source}, {sizes}, tiling.{stem}Step);")
            return
        self.out(f"{'Load' if is_in else 'Store'}({target}, {source}, {sizes});")

    def steps_over(self, *, is_in: bool) -> list[str]:
        """Return the parts of other tensors whose rows are copied with what lies between them."""
        if not (self.by_rows or self.down):
            return []
        segments = self.input_segments if is_in else self.output_segments
        windows = self.domain.windows
        return [name for name, _, is_row in segments if not is_row and name in windows]

    def copy_out(self) -> None:
        out = self.out
        if not self.output_segments:
            return
        if self.by_rows or self.down:
            out("__aicore__ inline void CopyOut(int64_t row, uint32_t rows)")
        else:
            out("__aicore__ inline void CopyOut(int64_t tile)")
        out("{")
        if not (self.by_rows or self.down):
            self.part_position(self.output_segments)
        out("LocalTensor<uint8_t> output = outputQueue.DeQue<uint8_t>();")
        for name, _, is_row in self.output_segments:
            tensor = self.graph.tensors[name]
            self.copy(tensor, self.output_segments, "output", is_row, is_in=False)
        out("outputQueue.FreeTensor(output);")
        out("}")
        out()

    # Computing

    def prepare(self) -> None:
        out = self.out
        section = self.program.sections[0]
        out("// What does not change from tile to tile.")
        out("__aicore__ inline void Prepare(int64_t row)")
        out("{")
        loads = [step for step in section.steps if step.operation == "Load"]
        rest = [step for step in section.steps if step.operation != "Load"]
        if loads:
            out("Order<HardEvent::V_MTE2>();")
            if any(s.operation == "Read" for sec in self.program.sections for s in sec.steps):
                out("Order<HardEvent::S_MTE2>();")
        for step in loads:
            tensor = self.graph.tensors[step.mode]
            count = "columns" if step.target.space == "column" else "1"
            at = f"{self.stems[tensor.name]}Global[{self.offset(tensor, 'row', '')}]"
            sizes = count if self.by_lines else f"1, {count}"
            out(f"Load({self.named(step.target, section)}, {at}, {sizes});")
        if loads:
            out("Order<HardEvent::MTE2_V>();")
            if any(s.operation == "Read" and s.target in [x.target for x in loads] for s in rest):
                out("Order<HardEvent::MTE2_S>();")
        if any(step.target.space == "tile" for step in rest):
            # What is the same for all rows, and reduced along them, is a tile of one row.
            out("constexpr uint32_t rows = 1;")
            if any(step.target.space == "tile" and step.operation != "Fill" for step in rest):
                count = "RoundUp(stride, 64)" if self.compares else "stride"
                out(f"const uint32_t count = {count};")
        for step in rest:
            self.step(step, section)
        out("}")
        out()

    def compute(self, index: int, section: Section) -> None:
        out = self.out
        if not section.steps:
            return
        name = self.pass_name(index)
        stores = index == self.last_pass and bool(self.output_segments)
        if self.by_rows:
            out("__aicore__ inline void Compute(uint32_t rows)")
        elif self.down:
            out(f"__aicore__ inline void Compute{name}(uint32_t rows, bool isFirst)")
        elif self.reduces:
            out(f"__aicore__ inline void Compute{name}(uint32_t {self.length}, bool isFirst)")
        else:
            out(f"__aicore__ inline void Compute(uint32_t {self.length})")
        out("{")
        self.out = body = Text()
        self.compute_body(section, stores=stores)
        self.out = out
        if body.mentions("count") and (self.by_rows or self.down or self.compares):
            length = "rows * stride" if self.by_rows or self.down else "length"
            length = f"RoundUp({length}, 64)" if self.compares else length
            out(f"const uint32_t count = {length};")
        out.extend(body)
        out("}")
        out()

    @property
    def length(self) -> str:
        """The elements of a part of a row; comparisons count whole repeats of them."""
        return "length" if self.compares else "count"

    def compute_body(self, section: Section, *, stores: bool) -> None:
        out = self.out
        if self.input_segments:
            out("LocalTensor<uint8_t> input = inputQueue.DeQue<uint8_t>();")
        if stores:
            out("LocalTensor<uint8_t> output = outputQueue.AllocTensor<uint8_t>();")
        self.declare(section)
        if self.compares:
            for step in section.steps:
                if step.operation == "Load":
                    loaded = "length" if not (self.by_rows or self.down) else "rows * stride"
                    end = "count"
                    if step.target.space == "row":
                        loaded, end = "rows", "RoundUp(rows, 64)"
                    out(f"FillTail({self.named(step.target, section)}, {loaded}, {end});")
        for step in section.steps:
            if step.operation != "Load":
                self.step(step, section)
        if stores:
            out("outputQueue.EnQue<uint8_t>(output);")
        if self.input_segments:
            out("inputQueue.FreeTensor(input);")

    def finishes(self, index: int, section: Section) -> bool:
        """Whether anything happens once a row, or once a unit, after a pass."""
        is_last = index == len(self.program.sections) - 1
        kept = any(value.space == self.kept_space for _, value in self.program.outputs)
        return bool(section.steps) or (is_last and kept)

    def finish(self, index: int, section: Section) -> None:
        out = self.out
        out(f"__aicore__ inline void Finish{self.pass_name(index - 1)}(int64_t row)")
        out("{")
        self.declare(section)
        for step in section.steps:
            self.step(step, section)
        for tensor, value in self.program.outputs:
            if value.space == self.kept_space and index == len(self.program.sections) - 1:
                stem = self.stems[tensor.name]
                sizes = "1" if self.by_lines else "1, columns" if self.down else "1, 1"
                out("Order<HardEvent::V_MTE3>();")
                out(
                    f"Store({stem}Global[{self.offset(tensor, 'row', '')}],"
                    f" {self.named(value, section)}, {sizes});"
                )
                out("Order<HardEvent::MTE3_V>();")
        out("}")
        out()

    # The rest of the class

    def helpers(self) -> None:
        out = self.out
        self.batch_functions()
        if self.by_rows:
            out.all(HELPERS["RowsAtBatch" if self.layout.splits_batches else "RowsAt"])
        elif self.down:
            out.all(self.rows_down)
        else:
            out.all(HELPERS["CountOf" if not self.layout.has_single_row else "CountOfSingle"])
        if self.down:
            modes = {
                s.mode for sec in self.program.sections for s in sec.steps if s.operation == "Fold"
            }
            for mode in sorted(modes):
                out.all(HELPERS[f"{mode}Down"])
        for name in sorted(self.helper_needs - {"blocks"}):
            out.all(HELPERS[name])
        way = "Down" if self.down else "WithGap" if self.layout.has_gap else ""
        way = "Line" if self.by_lines else way
        way = f"Blocks{way}" if self.layout.copies_blocks else way
        by_itself = self.copies_by_itself(self.input_segments, is_in=True)
        if (self.input_segments or self.prepares) and not by_itself:
            out.all(HELPERS[f"Load{way}"])
        if self.by_rows and self.program.one_row:
            out.all(HELPERS["LoadRows"])
        if not self.copies_by_itself(self.output_segments, is_in=False):
            out.all(HELPERS[f"Store{way}"])
        for name, is_in in (("LoadPart", True), ("StorePart", False)):
            if self.steps_over(is_in=is_in):
                out.all(HELPERS[name])
        if self.compares:
            out.all(HELPERS["FillTail"])
        out.all(self.size_helpers())
        if self.layout.has_gap and self.input_segments:
            words = f"({self.queue_bytes(self.input_segments)}) / 2"
            out.all(line.replace("WORDS", words) for line in HELPERS["ClearInput"])
        if self.clears_output:
            words = f"({self.queue_bytes(self.output_segments)}) / 2"
            out.all(line.replace("WORDS", words) for line in HELPERS["ClearOutput"])

    @property
    def slot_length(self) -> str:
        """The elements from one slot to the next."""
        return SLOT_LENGTH

    @property
    def first_slot(self) -> str:
        """Where in its buffer the first slot begins, as an index."""
        return ""

    def size_helpers(self) -> list[str]:
        """Return the functions that say how long slots are: those that more than one line calls."""
        found: list[str] = []
        for area, name in (("scratch", "SlotLength"), ("mask", "MaskBytes")):
            lines = [line.replace(SLOT_LENGTH, self.slot_length) for line in HELPERS[name]]
            (value,) = (line[len("return ") : -1] for line in lines if line.startswith("return "))
            if self.plan.counts[area] and not self.out.say_once(name, value):
                found += lines
        return found

    def members(self) -> None:
        out = self.out
        out(f"static constexpr int32_t BUFFERS = {self.plan.buffers};")
        out("TPipe pipe;")
        if self.input_segments:
            out("TQue<QuePosition::VECIN, BUFFERS> inputQueue;")
        if self.output_segments:
            out("TQue<QuePosition::VECOUT, BUFFERS> outputQueue;")
        if self.works:
            out("TBuf<QuePosition::VECCALC> workBuffer;")
            out("LocalTensor<float> work;")
        if self.plan.counts["scratch"]:
            out("TBuf<QuePosition::VECCALC> scratchBuffer;")
            out("LocalTensor<float> scratch;")
        if self.plan.counts["mask"]:
            out("TBuf<QuePosition::VECCALC> maskBuffer;")
            out("LocalTensor<uint8_t> masks;")
        for area, _, _ in self.small_buffers:
            out(f"TBuf<QuePosition::VECCALC> {area}Buffer;")
            out(f"LocalTensor<float> {slots(area)};")
            if self.blocks_behind(area):
                out("LocalTensor<float> blocks;")
        for tensor in self.tensors:
            out(f"GlobalTensor<{self.type_of(tensor)}> {self.stems[tensor.name]}Global;")
        unit = "Row" if self.by_rows or self.down or self.reduces else "Tile"
        out(f"int64_t first{unit} = 0;")
        out(f"int64_t last{unit} = 0;")
        if self.by_rows or self.down:
            out("uint32_t columns = 0;")
            out("uint32_t stride = 0;  // elements from row to row in the buffer")
        if self.down:
            out("int64_t batch = 0;")
            out("int64_t column = 0;  // the first of the unit")
        scalars: dict[str, str] = {}
        for section in self.program.sections:
            for step in section.steps:
                if step.operation == "Read":
                    scalars[f"scalar{step.target.number}"] = self.type_of_value(step.target)
        for name, kind in scalars.items():
            out(f"{kind} {name} = 0;")
        self.own_members()

    def own_members(self) -> None:
        """Write the members that come last."""
        self.out(f"{self.struct} tiling;")
