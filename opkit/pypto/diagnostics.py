"""What users of tensor compilers run into, said at their line."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Sequence
from types import FrameType

from opkit.compiler import GraphBuilder, GraphError, Location, Value

from .location import here

__all__ = [
    "PyptoWarning",
    "check_backward",
    "check_heads",
    "check_tile_shapes",
    "depends_on",
    "undefined_name",
    "warn",
]

# A tile in, a tile out and one between, in float32: what a vector operation needs at least.
_TILES_AT_ONCE = 3


class PyptoWarning(UserWarning):
    """The program runs as it is written, and probably does not do what was meant."""


def warn(message: str, location: Location | None) -> None:
    """Warn at a line of the user's."""
    place = location or Location("pypto", 0)
    warnings.warn_explicit(message, PyptoWarning, place.file, place.line)


def check_heads(builder: GraphBuilder, scores: Value, axis: int) -> None:
    """Warn of attention whose products run over the heads of one position.

    Queries reshaped to (batch, length, heads, width) and multiplied as they are give scores of
    (batch, length, heads, heads): each position attends to its own heads only.
    """
    if len(scores.shape) != 4 or axis not in (-1, 3):
        return
    nodes = {node.output.name: node for node in builder.nodes}
    node = nodes.get(scores.tensor.name)
    while node is not None and node.operator in ("div", "mul", "add", "sub", "cast"):
        node = nodes.get(node.inputs[0])
    if node is None or node.operator != "matmul":
        return
    query = nodes.get(node.inputs[0])
    if query is not None and query.operator == "reshape":
        length, heads = query.output.shape[1], query.output.shape[2]
        warn(
            f"attention over the {heads} heads of each position, not over the {length} positions:"
            " the products' operands were split into heads and not transposed;"
            " transpose(0, 2, 1, 3) after the reshape",
            here(),
        )


def check_tile_shapes(sizes: Sequence[int]) -> None:
    """Warn of vector tiles that cannot lie in the unified buffer.

    The vendor's compiler cuts them down to the tensors at hand, so that they may be right; opkit
    chooses tiles by itself.

    Raises:
        GraphError: they are not 1 to 5 positive numbers.
    """
    from opkit import runtime
    from opkit.chips import find_chip

    if not 1 <= len(sizes) <= 5 or any(not isinstance(s, int) or s < 1 for s in sizes):
        raise GraphError(
            f"set_vec_tile_shapes takes 1 to 5 positive numbers, not {sizes}", location=here()
        )
    chip = find_chip(runtime.configuration().chip)
    room = int(chip.numbers["memory.ub_bytes"].value)
    fits = list(sizes)
    while _tile_bytes(fits) > room:
        widest = max(range(len(fits)), key=fits.__getitem__)
        fits[widest] = max(1, fits[widest] // 2)
    if fits != list(sizes):
        warn(
            f"{_TILES_AT_ONCE} tiles of {'x'.join(map(str, sizes))} elements of 4 bytes take"
            f" {_tile_bytes(sizes)} bytes, and the unified buffer of {chip.name} has {room};"
            f" set_vec_tile_shapes({', '.join(map(str, fits))}) fits",
            here(),
        )


def _tile_bytes(sizes: Sequence[int]) -> int:
    total = 4 * _TILES_AT_ONCE
    for size in sizes:
        total *= size
    return total


def depends_on(builder: GraphBuilder, tile: Value, start: Value) -> bool:
    """Return whether a tile was computed from a tensor's value before anything was written."""
    return start.tensor.name in _ancestors(builder, tile)


def _ancestors(builder: GraphBuilder, value: Value) -> set[str]:
    nodes = {node.output.name: node for node in builder.nodes}
    found: set[str] = set()
    waiting = [value.tensor.name]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name in nodes and nodes[name].operator != "constant":
            waiting += nodes[name].inputs
    return found


def undefined_name(error: NameError) -> GraphError:
    """Return the error of a name that the user's program does not have."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = Location(trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else None
    name = getattr(error, "name", None) or "a name"
    return GraphError(
        f'"{name}" is not defined',
        location=place,
        help="define it as a function above, with @pypto.jit if it is to be called by itself",
    )


def check_backward() -> None:
    """Warn where torch calls for a forward whose backward returns nothing."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "forward":
        frame = frame.f_back
        if frame is not None and frame.f_code.co_filename.startswith("<"):
            return
    if frame is None:
        return
    owner = getattr(frame.f_locals.get("ctx"), "_forward_cls", None)
    backward = getattr(owner, "backward", None)
    if owner is None or backward is None:
        return
    code = backward.__code__
    if set(code.co_consts) <= {None} | {backward.__doc__} and not code.co_names:
        line = inspect.getsourcelines(backward)[1]
        warn(
            f"{owner.__name__}.backward returns nothing: its inputs get no gradient;"
            " return one gradient for each input of forward",
            Location(code.co_filename, line),
        )
