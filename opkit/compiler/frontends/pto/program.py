"""A tile program: recorded instruction by instruction, with its loops."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opkit.chips import DEFAULT_CHIP
from opkit.errors import UsageError

from ...ir import Graph, GraphError, Value, here
from ...launch import Compiled, compile
from ...tracing import GraphBuilder, run_graph
from .instructions import INSTRUCTIONS, NOT_EXECUTED, Instruction
from .lowering import applied, lower
from .parts import Body, Branch, Condition, Index, Loop, Memory, Step, Tile, setting_at
from .printing import program_text

__all__ = ["Program"]


class Program:
    """Collects the instructions of one tile program.

    Tile operations are methods by their names, with or without the leading T, in either case:
    `p.add(a, b)`, `p.TROWSUM(a)`; settings follow the tiles, in order or by name. `into=` writes
    a register again, as sums along a loop do.

    Raises:
        GraphError: an instruction does not exist or does not take these tiles; at the user's line.
    """

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self._memories: list[Memory] = []
        self._body: Body = []
        self._open: list[Body] = [self._body]
        self._count = 0
        self._loops = 0
        # Shapes and types come from the compiler's own rules, applied to a stand-in of each tile.
        self._shadow = GraphBuilder(name)
        self._stands: dict[str, Value] = {}

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> Memory:
        """Declare an array that is read."""
        return self._memory(name, shape, dtype, False)

    def output(self, name: str, shape: Sequence[int], dtype: str = "float32") -> Memory:
        """Declare an array that is written."""
        return self._memory(name, shape, dtype, True)

    def _memory(self, name: str, shape: Sequence[int], dtype: str, is_output: bool) -> Memory:
        stand = self._shadow.input(name, tuple(shape), dtype)
        memory = Memory(name, tuple(shape), stand.dtype, is_output)
        self._memories.append(memory)
        self._stands[name] = stand
        return memory

    # Memory, loops, order

    def load(
        self,
        memory: Memory,
        offsets: Sequence[int | Index] | None = None,
        shape: Sequence[int] | None = None,
    ) -> Tile:
        """Return a tile with a part of an array; the whole without offsets."""
        offsets = tuple(offsets) if offsets is not None else (0,) * len(memory.shape)
        shape = tuple(shape) if shape is not None else memory.shape
        return self._record(
            "TLOAD", (memory,), (("offsets", offsets), ("shape", shape)), shape, memory.dtype
        )

    def store(
        self, memory: Memory, tile: Tile, offsets: Sequence[int | Index] | None = None
    ) -> None:
        """Write a tile to an output."""
        place = here()
        if not memory.is_output:
            raise GraphError(
                f'"{memory.name}" is an input', location=place, help="declare an output"
            )
        if tile.dtype != memory.dtype:
            raise GraphError(
                f'"{memory.name}" is {memory.dtype}, the tile {tile.dtype}',
                location=place,
                help=f'p.cvt(tile, "{memory.dtype}")',
            )
        offsets = tuple(offsets) if offsets is not None else (0,) * len(memory.shape)
        self._open[-1].append(Step("TSTORE", None, (memory, tile), (("offsets", offsets),), place))

    def expands(self, scalar: float, shape: Sequence[int], dtype: str = "float32") -> Tile:
        """Return a tile that is one number everywhere."""
        settings = (("scalar", scalar), ("shape", tuple(shape)), ("dtype", dtype))
        return self._record("TEXPANDS", (), settings, tuple(shape), dtype)

    def barrier(self) -> None:
        """Wait until all that came before is done; here instructions wait for what they read."""
        self._open[-1].append(Step("BARRIER", None, (), (), here()))

    def sync(self, source: str = "", target: str = "") -> None:
        """Make one pipe wait for another. Here every instruction waits for what it reads."""
        settings = (("source", source), ("target", target)) if source else ()
        self._open[-1].append(Step("SYNC", None, (), settings, here()))

    @contextmanager
    def for_loop(self, begin: int, end: int | None = None, step: int = 1) -> Iterator[Index]:
        """Repeat what the block records: `for_loop(4)`, `for_loop(0, 64, 16)`."""
        bounds = (0, begin, step) if end is None else (begin, end, step)
        variable = f"i{self._loops}"
        self._loops += 1
        loop = Loop(variable, bounds, [])
        self._open[-1].append(loop)
        self._open.append(loop.body)
        yield Index(f"%{variable}", lambda known: known[variable])
        self._open.pop()

    @contextmanager
    def if_cond(self, condition: Condition) -> Iterator[None]:
        """Record what happens only where a condition of indices holds; of tiles, TSEL selects."""
        if not isinstance(condition, Condition):
            raise GraphError(
                f"{type(condition).__name__} is no condition of indices",
                location=here(),
                help="compare loop variables; where tiles decide, use p.sel(mask, a, b)",
            )
        branch = Branch(condition, [], [])
        self._open[-1].append(branch)
        self._open.append(branch.body)
        yield
        self._open.pop()

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Record what happens where the condition just before does not hold."""
        last = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(last, Branch):
            raise GraphError("otherwise() follows no if_cond()", location=here())
        self._open.append(last.otherwise)
        yield
        self._open.pop()

    # Tile operations

    def __getattr__(self, name: str) -> Callable[..., Tile]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*operands: Any, into: Tile | None = None, **settings: Any) -> Tile:
            return self.op(name, *operands, into=into, **settings)

        return call

    def op(self, name: str, *operands: Any, into: Tile | None = None, **settings: Any) -> Tile:
        """Record a tile operation by name and return its result."""
        row, place = _find(name), here()
        tiles = operands[: row.tiles]
        if len(tiles) < row.tiles or not all(isinstance(tile, Tile) for tile in tiles):
            raise GraphError(
                f"{row.name} takes {row.tiles} tiles, then {', '.join(row.settings) or 'nothing'}",
                location=place,
            )
        given = dict(zip(row.settings, operands[row.tiles :], strict=False)) | settings
        unknown = [key for key in given if key not in row.settings]
        missing = [key for key in row.settings if key not in given]
        if unknown or missing or len(operands) > row.tiles + len(row.settings):
            what = f"no {unknown[0]}" if unknown else f"the settings {', '.join(row.settings)}"
            raise GraphError(f"{row.name} takes {what or 'no settings'}", location=place)
        kept = tuple((key, _frozen(given[key])) for key in row.settings)
        # Offsets may hang on loops: a part's shape does not.
        fixed = {key: setting_at(value, None) for key, value in kept}
        with self._shadow.at(place):
            stand = applied(row, [self._stands[tile.name] for tile in tiles], fixed, place)
        if into is not None and (into.shape, into.dtype) != (stand.shape, stand.dtype):
            raise GraphError(
                f"{row.name} gives {stand.dtype}{list(stand.shape)}, into is"
                f" {into.dtype}{list(into.shape)}",
                location=place,
            )
        return self._record(row.name, tiles, kept, stand.shape, stand.dtype, into)

    def _record(
        self,
        name: str,
        operands: tuple[Any, ...],
        settings: tuple[tuple[str, Any], ...],
        shape: Any,
        dtype: str,
        into: Tile | None = None,
    ) -> Tile:
        target = into or Tile(f"t{self._count}", tuple(shape), dtype)
        if into is None:
            self._count += 1
            self._stands[target.name] = self._shadow.input(
                f"tile {target.name}", target.shape, dtype
            )
        self._open[-1].append(Step(name, target, operands, settings, here()))
        return target

    # What becomes of it

    def graph(self) -> Graph:
        """Return the program as a graph: loops run out, stores joined to arrays.

        Raises:
            GraphError: an output has elements that nothing writes, or a register is read before it
                is written.
        """
        return lower(self.name, self._memories, self._body)

    def compile(self, *, chip: str = DEFAULT_CHIP) -> Compiled:
        """Return the program compiled for the emulated chip."""
        return compile(self.graph(), chip=chip)

    def run(self, *arrays: Any) -> dict[str, Any]:
        """Return the outputs by name, computed by NumPy in float64."""
        graph = self.graph()
        names = [tensor.name for tensor in graph.inputs]
        if len(arrays) != len(names):
            raise UsageError(f"{self.name} takes {len(names)} arrays, not {len(arrays)}")
        values = run_graph(graph, dict(zip(names, arrays, strict=True)))
        return {name: values[tensor] for name, tensor in graph.outputs}

    def __str__(self) -> str:
        return program_text(self.name, self._memories, self._body)


def _find(name: str) -> Instruction:
    upper = name.upper()
    for each in (upper, f"T{upper}"):
        if each in INSTRUCTIONS:
            return INSTRUCTIONS[each]
    for each in (upper, f"T{upper}"):
        if each in NOT_EXECUTED:
            raise GraphError(
                f"{each} is an instruction of the specification that opkit does not execute",
                location=here(),
            )
    near = difflib.get_close_matches(upper, [*INSTRUCTIONS, *(n[1:] for n in INSTRUCTIONS)], n=3)
    raise GraphError(
        f'there is no instruction "{name}"',
        location=here(),
        help=f"did you mean {' or '.join(near)}?" if near else None,
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value
