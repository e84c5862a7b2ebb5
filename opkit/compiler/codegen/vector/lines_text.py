"""A kernel of whole rows, and of parts of longer ones, as Ascend C: one class."""

from __future__ import annotations

from functools import cached_property

from ...ir import Graph
from ..text import Text
from .helpers import HELPERS
from .line_helpers import fold_call, fold_helpers, spread_call, spread_helpers
from .lines import Stage, stages_of
from .slots import Plan
from .steps import Section, Step, Value
from .tiling import TilingLayout
from .typed_text import TypedWriter
from .types import Types

__all__ = ["LinesWriter"]


class LinesWriter(TypedWriter):
    """Writes a function for each stage; whole rows run through all of them once."""

    def __init__(
        self, name: str, graph: Graph, plan: Plan, layout: TilingLayout, types: Types
    ) -> None:
        super().__init__(name, graph, plan, layout, types)
        self.by_rows = True

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return stages_of(self.program)

    @property
    def tile_stages(self) -> list[int]:
        """The stages that take tiles."""
        return [at for at, stage in enumerate(self.stages) if stage.takes_tiles]

    def comment(self) -> None:
        self.out(
            "// A core takes a range of rows: some whole ones a tile, or a part of a longer one."
        )
        self.out("// The next tile is copied in while this one computes.")

    def begin(self) -> None:
        self.out("nextRow = firstRow;")

    # Process

    def process_rows(self) -> None:
        out = self.out
        out("CopyIn();")
        out("for (int64_t row = firstRow; row < lastRow; row += tiling.rowsPerTile) {")
        out("const uint32_t rows = RowsAt(row);")
        last = len(self.stages) - 1
        for at, stage in enumerate(self.stages):
            if stage.takes_tiles:
                out(
                    "for (uint32_t column = 0; column < tiling.columns;"
                    " column += tiling.partLength) {"
                )
                out(f"Compute{at}(rows, column);")
                if at == last:
                    out("CopyOut(row, column, rows);")
                out("}")
            else:
                out(f"Compute{at}(rows);")
                out("CopyOut(row, rows);")
        out("}")

    # Copies

    def copy_in(self) -> None:
        out = self.out
        out("// Copies in what comes next; of a row in parts all of them for every pass over it.")
        out("__aicore__ inline void CopyIn()")
        out("{")
        out("if (nextRow >= lastRow) {")
        out("return;")
        out("}")
        out("const uint32_t rows = RowsAt(nextRow);")
        out("const uint32_t length = LengthAt(nextColumn);")
        out("LocalTensor<uint8_t> next = inputQueue.AllocTensor<uint8_t>();")
        by_passes: dict[str, list[str]] = {}
        for name, _, _ in self.input_segments:
            by_passes.setdefault(self.passes_of(name), []).append(name)
        for passes, names in by_passes.items():
            if passes:
                out(f"if (!InParts() || {passes}) {{")
            for name in names:
                self.load(name)
            if passes:
                out("}")
        out("inputQueue.EnQue<uint8_t>(next);")
        out("nextColumn += tiling.partLength;")
        out("if (nextColumn >= tiling.columns) {")
        out("nextColumn = 0;")
        count = len(self.tile_stages)
        if count > 1:
            out(f"nextPass = InParts() ? (nextPass + 1) % {count} : 0;")
        out(f"nextRow += {'nextPass > 0 ? 0 : ' if count > 1 else ''}tiling.rowsPerTile;")
        out("}")
        out("}")
        out()

    def passes_of(self, name: str) -> str:
        """Return the C++ of whether a pass over parts reads an input; empty where all do."""
        (loaded,) = (s.target for s in self.steps if s.operation == "Load" and s.mode == name)
        stages = [self.stages[at] for at in self.tile_stages]
        reading = [
            at
            for at, stage in enumerate(stages)
            for step in (*stage.rows, *stage.again, *stage.steps)
            if loaded in step.sources
        ]
        passes = list(dict.fromkeys(reading))
        if len(passes) == len(stages):
            return ""
        return " || ".join(f"nextPass == {at}" for at in passes)

    def load(self, name: str) -> None:
        tensor = self.graph.tensors[name]
        is_row = name in self.plan.row_inputs
        stem, kind = self.stems[name], self.type_of(tensor)
        at = self.segment(self.input_segments, name)
        local = f"next{'' if at == '0' else f'[{at}]'}.ReinterpretCast<{kind}>()"
        place = f"{stem}Global[{self.offset(tensor, 'nextRow', 'nextColumn')}]"
        if name in self.program.one_row:
            self.out(f"LoadRows({local}, {place}, tiling.{stem}Step, rows, length);")
        else:
            self.out(f"Load({local}, {place}, {'1, rows' if is_row else 'rows, length'});")

    def copy_out(self) -> None:
        out = self.out
        by_parts = self.stages[-1].takes_tiles
        column = "uint32_t column, " if by_parts else ""
        out(f"__aicore__ inline void CopyOut(int64_t row, {column}uint32_t rows)")
        out("{")
        out("LocalTensor<uint8_t> output = outputQueue.DeQue<uint8_t>();")
        for name, _, is_row in self.output_segments:
            tensor = self.graph.tensors[name]
            stem, kind = self.stems[name], self.type_of(tensor)
            at = self.segment(self.output_segments, name)
            local = f"output{'' if at == '0' else f'[{at}]'}.ReinterpretCast<{kind}>()"
            place = f"{stem}Global[{self.offset(tensor, 'row', 'column')}]"
            if is_row and by_parts:
                out("if (column == 0) {")
            out(f"Store({place}, {local}, {'1, rows' if is_row else 'rows, columns'});")
            if is_row and by_parts:
                out("}")
        out("outputQueue.FreeTensor(output);")
        out("}")
        out()

    # Computing

    def compute(self, index: int, section: Section) -> None:
        for at in range(len(self.stages)):
            self.compute_stage(at)

    def compute_stage(self, at: int) -> None:
        stage, out = self.stages[at], self.out
        column = ", uint32_t column" if stage.takes_tiles else ""
        out(f"__aicore__ inline void Compute{at}(uint32_t rows{column})")
        out("{")
        self.out = body = Text()
        self.stage_body(at)
        self.out = out
        if stage.takes_tiles:
            length = "TileLength(rows, column)"
            if body.mentions("count"):
                length = f"RoundUp({length}, 64)" if self.compares else length
                length = f"const uint32_t count = {length}"
            out(f"{length};")
        out.extend(body)
        out("}")
        out()

    def stage_body(self, at: int) -> None:
        stage, out = self.stages[at], self.out
        is_last, tiles = at == len(self.stages) - 1, self.tile_stages
        several = len(tiles) > 1
        if stage.takes_tiles:
            out(f"TakeInput({'true' if at == 0 else 'false'});" if several else "TakeInput();")
        if is_last:
            out("LocalTensor<uint8_t> output = outputQueue.AllocTensor<uint8_t>();")
        section = Section("tile", (*stage.rows, *stage.again, *stage.steps))
        self.declare(section)
        constants = self.plan.constants
        once = stage.takes_tiles and any(s.target.number not in constants for s in stage.rows)
        if once:
            out("if (column == 0) {")
        for step in stage.rows:
            self.step(step, section)
        if once:
            out("}")
        fills = self.fills(section) if stage.takes_tiles else []
        is_again = any(s.target.number not in constants for s in stage.again)
        in_parts = at > 0 and (bool(fills) or is_again)
        if in_parts:
            out("if (InParts()) {")
        out.all(fills)
        for step in stage.again:
            self.step(step, section)
        if in_parts:
            out("}")
        for step in stage.steps:
            self.step(step, section)
        if is_last:
            out("outputQueue.EnQue<uint8_t>(output);")
        if stage.takes_tiles and several:
            out(f"FreeInput({'true' if at == tiles[-1] else 'false'});")
        elif stage.takes_tiles:
            out("inputQueue.FreeTensor(input);")

    def fills(self, section: Section) -> list[str]:
        """Return what gives defined values to what comparisons read beyond a short tile."""
        if not self.compares:
            return []
        read = {value.number for value in self.declared(section)}
        found = []
        for step in self.steps:
            if step.operation == "Load" and step.target.number in read:
                loaded, end = "rows * stride", "count"
                if step.target.space == "row":
                    loaded, end = "rows", "RoundUp(rows, 64)"
                found.append(f"FillTail({self.named(step.target, section)}, {loaded}, {end});")
        return found

    @cached_property
    def copies(self) -> dict[int, Value]:
        """Outputs of what an earlier stage computes, and that."""
        last = {step.target.number for step in (*self.stages[-1].rows, *self.stages[-1].steps)}
        found: dict[int, Value] = {}
        stored = {value.number for _, value in self.program.outputs}
        for step in self.steps:
            if step.operation == "Cast" and step.target.number in stored:
                (source,) = step.sources
                assert isinstance(source, Value)
                is_same = source.kind == step.target.kind
                if is_same or (self.is_conversion(step) and source.number not in last):
                    found[step.target.number] = source
        return found

    @cached_property
    def converted(self) -> dict[int, Value]:
        apart = {source.number for source in self.copies.values()}
        loaded = {step.target.number for step in self.steps if step.operation == "Load"}
        return {
            number: stored
            for number, stored in super().converted.items()
            if number not in apart or stored.number in loaded
        }

    def step(self, step: Step, section: Section) -> None:
        if step.target.number in self.copies:
            count = self.count(step.target, section)
            self.out(f"Copy({self.ends(step, section)}, {count});", step.location)
        elif step.operation == "Reduce":
            call = fold_call(step.mode, self.folds)
            self.out(f"{call}({self.ends(step, section)}, rows, column == 0);", step.location)
        elif step.operation.endswith("Row"):
            call = spread_call(step.operation.removesuffix("Row"), self.spreads)
            ends = [step.target, *step.sources]
            names = [self.operand(each, step.target.kind, section) for each in ends]
            self.out(f"{call}({', '.join(names)}, rows);", step.location)
        else:
            super().step(step, section)

    # The rest of the class

    def helper_lines(self) -> list[str]:
        """Return the functions that the stages call."""
        found: list[str] = []
        several = len(self.tile_stages) > 1
        names = ["RowsAt", "LengthAt", "TileLength"]
        names += ["TakeInputAgain", "FreeInput"] if several else ["TakeInput"]
        names += ["InParts"] if several or self.program.one_row else []
        names += sorted(self.helper_needs - {"blocks"})
        gap = "WithGap" if self.layout.has_gap else ""
        names += [f"Load{gap}"]
        names += ["LoadRowsOfLines"] if self.program.one_row else []
        names += [f"Store{gap}"]
        names += ["FillTail"] if self.compares else []
        for name in names:
            found += HELPERS[name]
        found += fold_helpers(self.folds) if self.folds else []
        found += spread_helpers(self.spreads) if self.spreads else []
        return found + self.size_helpers()

    @cached_property
    def folds(self) -> list[str]:
        """The ways in which rows become numbers."""
        return sorted({step.mode for step in self.steps if step.operation == "Reduce"})

    @cached_property
    def spreads(self) -> list[str]:
        """The instructions that combine rows with a number of each."""
        names = {step.operation for step in self.steps if step.operation.endswith("Row")}
        return sorted(name.removesuffix("Row") for name in names)

    def helpers(self) -> None:
        for line in self.helper_lines():
            self.out(line.replace("stride * sizeof(T) / 32", "tiling.stride * sizeof(T) / 32"))
        if self.layout.has_gap:
            words = f"({self.queue_bytes(self.input_segments)}) / 2"
            self.out.all(line.replace("WORDS", words) for line in HELPERS["ClearInput"])
        if self.clears_output:
            words = f"({self.queue_bytes(self.output_segments)}) / 2"
            self.out.all(line.replace("WORDS", words) for line in HELPERS["ClearOutput"])
        self.type_helpers()
        if self.copies:
            self.out.all(HELPERS["Copy"])

    def own_members(self) -> None:
        out = self.out
        out("LocalTensor<uint8_t> input;")
        out("int64_t nextRow = 0;")
        out("uint32_t nextColumn = 0;")
        if len(self.tile_stages) > 1:
            out("uint32_t nextPass = 0;")
        super().own_members()
