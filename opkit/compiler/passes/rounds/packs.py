"""Values of all rounds in one tensor."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Shape, Value, product

__all__ = ["Pack", "beside", "moved", "reshaped"]


@dataclass(frozen=True)
class Pack:
    """What the same node of each round computes, along one more axis: the rounds'."""

    value: Value
    inner: int
    """Axes behind that of the rounds: a place that broadcasting in front does not change."""

    @property
    def place(self) -> int:
        """The rounds' axis."""
        return self.value.ndim - 1 - self.inner

    @property
    def count(self) -> int:
        """The number of rounds."""
        return int(self.value.shape[self.place])

    @property
    def shape(self) -> Shape:
        """The shape of one round's value."""
        shape = self.value.shape
        return (*shape[: self.place], *shape[self.place + 1 :])


def moved(pack: Pack, inner: int) -> Pack:
    """Return a pack with `inner` axes behind that of the rounds, axes of one in front if it takes
    them."""
    if pack.inner == inner:
        return pack
    shape, place = pack.shape, pack.place
    more = (1,) * max(0, inner - len(shape))
    wide = (*more, *shape)
    target = len(wide) - inner
    result = (*wide[:target], pack.count, *wide[target:])
    low, high = sorted((place + len(more), target))
    if product(wide[low:high]) == 1:
        return Pack(pack.value.reshape(*result), inner)
    value = pack.value
    if more:
        value = value.reshape(*more, *value.shape)
    order = [axis for axis in range(value.ndim) if axis != place + len(more)]
    order.insert(target, place + len(more))
    return Pack(value.transpose(*order), inner)


def beside(value: Value, inner: int) -> Value:
    """Return a value that is the same in each round as it broadcasts beside packs."""
    if value.ndim <= inner:
        return value
    place = value.ndim - inner
    return value.reshape(*value.shape[:place], 1, *value.shape[place:])


def reshaped(pack: Pack, shape: Shape) -> Pack:
    """Return the values of all rounds in another shape."""
    ahead = product(pack.value.shape[: pack.place])
    for place in range(len(shape), -1, -1):
        if product(shape[:place]) == ahead:
            wide = (*shape[:place], pack.count, *shape[place:])
            return Pack(pack.value.reshape(*wide), len(shape) - place)
    front = moved(pack, len(pack.shape))
    return Pack(front.value.reshape(front.count, *shape), len(shape))
