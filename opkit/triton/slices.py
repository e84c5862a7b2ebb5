"""Parts of tiles at offsets that are known when a kernel runs: extract, insert, one element."""

from __future__ import annotations

from .lowering import Lowering, indices
from .ttir import Operation
from .values import STORED, Stored

__all__ = ["SLICES", "lower_slice"]

SLICES = frozenset({"extract_slice", "insert_slice", "get_element"})


def lower_slice(lowering: Lowering, operation: Operation, name: str, strides: list[int]) -> None:
    """Lower one of `SLICES`; its operands are tiles, then an offset for each dimension."""
    given = lowering.given(operation)
    tiles = given[:2] if name == "insert_slice" else given[:1]
    whole = tiles[0].type.shape or ()
    places = [lowering.scalar(each).text for each in given[len(tiles) :]]
    pitches = [1] * len(whole)
    for axis in range(len(whole) - 2, -1, -1):
        pitches[axis] = pitches[axis + 1] * whole[axis + 1]
    sizes = {"extract_slice": operation.result_types[0].shape, "get_element": (1,) * len(whole)}
    part = sizes.get(name, tiles[-1].type.shape) or ()
    reach = [
        (size - 1) * stride for size, stride in zip(part, strides or [1] * len(part), strict=True)
    ]
    writer = lowering.writer
    # An offset behind the tile would read another tile.
    for place, extent, last in zip(places, whole, reach, strict=True):
        writer.line(
            f"ascendc_assert({place} >= 0 && {place} + {last} < {extent},"
            f' "{name}: an offset lies outside of the tile");'
        )
    first = " + ".join(f"{place} * {pitch}" for place, pitch in zip(places, pitches, strict=True))
    if name == "get_element":
        source = lowering.stored(tiles[0])
        writer.on("S")
        kind = operation.result_types[0]
        lowering.set(operation, lowering.new_scalar(kind, f"get({source.name}, {first})"))
        return
    kind = operation.result_types[0]
    target, source = lowering.new_buffer(kind), lowering.stored(tiles[0])
    writer.on("any")
    form = f"<{STORED[target.element]}, {len(whole)}>"
    steps = [stride * pitch for stride, pitch in zip(strides, pitches, strict=True)]
    if name == "insert_slice":
        writer.line(
            f"spread{form}({target.name}, {source.name}, 0, {indices(pitches)}, {indices(whole)});"
        )
        source = lowering.stored(tiles[1])
    function = "place" if name == "insert_slice" else "spread"
    writer.on("any")
    writer.line(
        f"{function}{form}({target.name}, {source.name}, {first}, {indices(steps)},"
        f" {indices(part)});"
    )
    writer.pipe = "any"
    lowering.set(operation, Stored(kind, target))
