"""The target `pto`: a graph as a tile program, each array one tile."""

from __future__ import annotations

from opkit.errors import UsageError

from ...ir import Dimension, Graph, GraphError, Node, Tensor
from ...ops import OPERATORS
from ...passes import Lowering, rewritten
from .instructions import INSTRUCTIONS
from .parts import Tile
from .program import Program

__all__ = ["tile_program"]

_BINARY = {
    **{"add": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", "maximum": "MAX", "minimum": "MIN"},
    **{"bitwise_and": "AND", "bitwise_or": "OR", "logical_and": "AND", "logical_or": "OR"},
}
_COMPARED = {
    **{"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt"},
    "greater_equal": "ge",
}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def tile_program(graph: Graph) -> Program:
    """Return a graph as a tile program.

    Raises:
        GraphError: an operator is no tile operation, or a tensor no matrix of fixed size; at the
            user's line.
    """
    return _Writer(rewritten(graph, Lowering("pto"))).run()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.program = Program(graph.name)
        self.tiles: dict[str, Tile] = {}
        self.numbers: dict[str, float] = {}

    def run(self) -> Program:
        for tensor in self.graph.inputs:
            memory = self.program.input(tensor.name, _matrix(tensor), tensor.dtype)
            self.tiles[tensor.name] = self.program.load(memory)
        for node in self.graph.nodes:
            self.node(node)
        for name, tensor in self.graph.output_tensors:
            if tensor.name not in self.tiles:
                raise GraphError(f'"{name}" is a single number, which no tile holds', location=None)
            tile = self.tiles[tensor.name]
            self.program.store(self.program.output(name, tile.shape, tile.dtype), tile)
        return self.program

    def node(self, node: Node) -> None:
        if node.operator == "constant":
            self.numbers[node.output.name] = node.settings["value"]
            return
        if node.operator in ("attribute", "extent"):
            raise GraphError(
                f"{node.operator}: a tile program has no numbers of a launch",
                location=node.location,
            )
        try:
            tile = self.made(node)
        except GraphError as err:
            raise GraphError(err.message, location=node.location, help=err.help) from err
        except UsageError as err:
            raise GraphError(err.message, location=node.location, help=err.help) from err
        if tile.dtype != node.output.dtype and node.output.dtype != "bool":
            tile = self.program.op("TCVT", tile, node.output.dtype)
        self.tiles[node.output.name] = tile

    def made(self, node: Node) -> Tile:
        op, name, settings = self.program.op, node.operator, node.settings
        if name in _BINARY:
            return self.binary(_BINARY[name], *node.inputs)
        if name in _COMPARED:
            return self.compared(_COMPARED[name], *node.inputs)
        tiles = [self.tiles.get(each) for each in node.inputs]
        if name == "where":
            shape = _matrix(node.output)
            return op("TSEL", *(self.full(each, shape, node.output.dtype) for each in node.inputs))
        if name in ("sum", "max", "min"):
            (axis,) = self.axes(node)
            return op(f"T{'ROW' if axis == 1 else 'COL'}{name.upper()}", tiles[0])
        if name == "cast":
            return op("TCVT", tiles[0], settings["dtype"])
        if name == "matmul":
            left, right = (
                op("TTRANS", tile) if settings[flag] else tile
                for tile, flag in zip(tiles, ("transpose_a", "transpose_b"), strict=True)
            )
            return op("TMATMUL", left, right)
        if name == "transpose":
            return op("TTRANS", tiles[0])
        if name == "take" and settings["axis"] == 0:
            return op("TGATHER", *tiles)
        if name == "broadcast_to":
            return self.full(node.inputs[0], _matrix(node.output), node.output.dtype)
        if name == "reshape" and tiles[0] is not None and _matrix(node.output) == tiles[0].shape:
            return op("TMOV", tiles[0])
        instruction = f"T{OPERATORS[name].pto.upper()}"
        if instruction in INSTRUCTIONS and OPERATORS[name].kind == "elementwise":
            return op(instruction, *tiles)
        raise UsageError(f"{name} is no tile operation of the PTO instruction set")

    def axes(self, node: Node) -> tuple[int, ...]:
        axes = node.settings["axis"]
        found = axes if isinstance(axes, tuple) else (axes,)
        lead = 2 - len(self.graph.inputs_of(node)[0].shape)
        if len(found) != 1 or not isinstance(found[0], int):
            raise UsageError(f"{node.operator} along {axes}: tiles are reduced along one axis")
        return (found[0] % (2 - lead) + lead,)

    def binary(self, name: str, first: str, second: str) -> Tile:
        op = self.program.op
        if second in self.numbers:
            return op(f"T{name}S", self.tiles[first], self.numbers[second])
        if first in self.numbers:
            number, tile = self.numbers[first], self.tiles[second]
            if name == "SUB":
                return op("TADDS", op("TNEG", tile), number)
            if name == "DIV":
                return op("TMULS", op("TRECIP", tile), number)
            return op(f"T{name}S", tile, number)
        left, right = self.tiles[first], self.tiles[second]
        if left.shape == right.shape:
            return op(f"T{name}", left, right)
        if _covers(left, right):
            return op(f"T{_side(right)}EXPAND{name}", left, right)
        if _covers(right, left) and name not in ("SUB", "DIV"):
            return op(f"T{_side(left)}EXPAND{name}", right, left)
        shape = (max(left.shape[0], right.shape[0]), max(left.shape[1], right.shape[1]))
        wide = self.expanded(left, shape)
        if right.shape == shape:
            return op(f"T{name}", wide, right)
        return op(f"T{_side(right)}EXPAND{name}", wide, right)

    def compared(self, mode: str, first: str, second: str) -> Tile:
        if second in self.numbers:
            return self.program.op("TCMPS", self.tiles[first], self.numbers[second], mode)
        if first in self.numbers:
            other = self.tiles[second]
            return self.program.op("TCMPS", other, self.numbers[first], _MIRRORED[mode])
        left, right = self.tiles[first], self.tiles[second]
        shape = (max(left.shape[0], right.shape[0]), max(left.shape[1], right.shape[1]))
        return self.program.op(
            "TCMP", self.expanded(left, shape), self.expanded(right, shape), mode
        )

    def full(self, name: str, shape: tuple[int, int], dtype: str) -> Tile:
        if name in self.numbers:
            return self.program.expands(self.numbers[name], shape, dtype)
        return self.expanded(self.tiles[name], shape)

    def expanded(self, tile: Tile, shape: tuple[int, int]) -> Tile:
        if tile.shape[1] != shape[1]:
            tile = self.program.op("TROWEXPAND", tile, (tile.shape[0], shape[1]))
        if tile.shape[0] != shape[0]:
            tile = self.program.op("TCOLEXPAND", tile, shape)
        return tile


def _covers(wide: Tile, narrow: Tile) -> bool:
    """Whether a tile has the other's one column for each of its own, or its one row."""
    rows, columns = wide.shape
    return narrow.shape in ((rows, 1), (1, columns))


def _side(narrow: Tile) -> str:
    return "ROW" if narrow.shape[1] == 1 else "COL"


def _matrix(tensor: Tensor) -> tuple[int, int]:
    extents: list[Dimension] = [1] * (2 - len(tensor.shape)) + list(tensor.shape)
    if len(extents) != 2 or not all(isinstance(extent, int) for extent in extents):
        raise GraphError(
            f'"{tensor.name}" is {list(map(str, tensor.shape))}: tiles are matrices of fixed size',
            location=None,
        )
    rows, columns = (int(extent) for extent in extents)
    return rows, columns
