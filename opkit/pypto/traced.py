"""Tensors while a program is traced: read and written as arrays are, recorded as operators."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opkit.compiler import GraphBuilder, GraphError, Value

from .boxes import Box, best_cuts, box_text, cut, holds, meets, with_ones
from .building import FUNCTIONS
from .elements import Element
from .location import here
from .symbolic import SymbolicScalar, numbers
from .valid_shapes import Partial, extents, padded, partial_result

__all__ = ["Traced", "new_value"]

# Functions that the public project's tensors have as methods too.
_METHODS = {
    *("add", "amax", "amin", "assemble", "ceil", "clone", "cos", "cumprod", "cumsum", "div", "exp"),
    *("exp2", "expand_clone", "expm1", "floor", "fmod", "gather", "gcd", "index_add", "index_add_"),
    *("log", "log10", "log2", "logical_not", "matmul", "maximum", "mul", "permute", "reciprocal"),
    *("remainder", "round", "rsqrt", "scatter", "scatter_", "scatter_update", "sigmoid", "sin"),
    *("softmax", "sqrt", "sub", "sum", "topk", "tril", "triu", "trunc", "unsqueeze", "view"),
    *("abs", "minimum", "neg", "relu", "mean", "max", "min", "square", "pow", "var", "pad"),
    *("fillpad", "eq", "ne", "lt", "le", "gt", "ge", "greater"),
}
Operand: TypeAlias = "Traced | float | int | bool"


@dataclass(frozen=True)
class _Write:
    """A part of a tensor and what was written there."""

    box: Box
    value: Value


@dataclass
class _Memory:
    """What tensors of other shapes over the same elements share: which of them was written last."""

    latest: Traced
    members: list[Traced]


class Traced:
    """A tensor of a program that is being traced; shapes are known, values are not."""

    __array_priority__ = 1000

    def __init__(
        self,
        builder: GraphBuilder,
        value: Value | None,
        *,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        parent: tuple[Traced, Box] | None = None,
        element: Callable[[tuple[int, ...]], int] | None = None,
    ) -> None:
        """Make a tensor of a program.

        Args:
            value: None where nothing is written yet, as of `pypto.tensor(shape, dtype)`.
            shape: the value's where it is left out; a larger one is that of a tensor which holds
                fewer elements than it says.
            element: of an argument of whole numbers: what stands at a place.
        """
        self.builder = builder
        self._value = value
        self._writes: list[_Write] = []
        self._parent = parent
        self.shape: tuple[int, ...] = numbers(
            shape if shape is not None else extents(value)  # type: ignore[arg-type]
        )
        self._element = element
        self._holds_parts = False
        self._memory: _Memory | None = None
        self.dtype: str = dtype if dtype is not None else value.dtype  # type: ignore[union-attr]
        self.is_written = False
        self.is_open = False
        """Whether it takes shape and data type of what is moved to it first."""
        self.name = ""
        self._cache_policies: dict[object, bool] = {}

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def value(self) -> Value:
        """What it holds now.

        Raises:
            GraphError: nothing has been written to some part of it.
        """
        self._catch_up()
        if self._writes:
            with self.builder.at(here()):
                whole = self._whole()
                if self._value is None and self._holds_parts:
                    # Beside parts of tiles nothing is there: zeros.
                    zero = self.builder.constant(0, self.dtype)
                    self._value = zero.apply("broadcast_to", shape=tuple(b for _, b in whole))
                self._value = self._part(whole, self._writes)
            self._writes = []
        if self._value is None:
            raise GraphError(
                f"a tensor of {self.shape} is read, and nothing has been written to it",
                location=here(),
                help="assemble its tiles first, or start from pypto.zeros",
            )
        return self._value

    def _whole(self) -> Box:
        """Return the part that the value is of: of tiles that are partly there, up to the last."""
        if self._value is not None:
            return tuple((0, extent) for extent in extents(self._value))
        if self._holds_parts:
            return tuple(
                (0, max(write.box[axis][1] for write in self._writes)) for axis in range(self.ndim)
            )
        return tuple((0, int(extent)) for extent in self.shape)

    @property
    def valid_shape(self) -> tuple[int, ...]:
        """How many elements are there along each axis; the shape, but for parts of tiles."""
        return extents(self.value)

    @property
    def is_partial(self) -> bool:
        """Whether it holds fewer elements than its shape says."""
        if self._value is None and not self._writes:
            return False
        return tuple(b for _, b in self._whole()) != self.shape

    @property
    def whole_value(self) -> Value:
        """The value in the tensor's shape, with zeros behind what is there."""
        with self.builder.at(here()):
            return padded(self.value, self.shape)

    def _part(self, box: Box, writes: Sequence[_Write]) -> Value:
        """Return what a part holds after these writes."""
        hit = [write for write in writes if meets(write.box, box)]
        for at in reversed(range(len(hit))):
            if holds(hit[at].box, box):
                hit = hit[at:]
                break
        if not hit:
            if self._value is None:
                raise GraphError(
                    f"{box_text(box)} of a tensor of {self.shape} is read, and nothing has been"
                    " written there",
                    location=here(),
                    help="assemble every tile, or start from pypto.zeros",
                )
            return cut(self._value, box)
        last = hit[-1]
        if len(hit) == 1 and holds(last.box, box):
            return cut(
                last.value,
                tuple((a - w, b - w) for (a, b), (w, _) in zip(box, last.box, strict=True)),
            )
        axis, cuts = best_cuts(box, [write.box for write in hit])
        edges = [box[axis][0], *cuts, box[axis][1]]
        parts = [
            self._part((*box[:axis], (a, b), *box[axis + 1 :]), hit)
            for a, b in itertools.pairwise(edges)
        ]
        return self.builder.apply("concat", *parts, axis=axis)

    # Reading

    def __getitem__(self, key: object) -> Any:
        """Return a part; a number where an element of an argument of whole numbers is asked for."""
        box, shape = self._box(self._keys(key))
        if self._element is not None and not shape and not self.is_written and self.ndim:
            # What a call brings decides what the program does: a number, not a tensor.
            return SymbolicScalar(self._element(tuple(start for start, _ in box)))
        if self.is_partial:
            inner = tuple(
                (min(a, there), min(b, there))
                for (a, b), there in zip(box, self.valid_shape, strict=True)
            )
            if all(a < b for a, b in inner):
                with self.builder.at(here()):
                    part = cut(self.value, inner)
                wide = tuple(b - a for a, b in box)
                found = Traced(self.builder, part, shape=wide)
                return found if wide == shape else found.reshape(*shape)
            self._value = self.whole_value
        with self.builder.at(here()):
            is_begun = self._value is None and bool(self._writes)
            part = self._part(box, self._writes) if is_begun else cut(self.value, box)
            if tuple(part.shape) != shape:
                part = part.reshape(*shape)
        return Traced(self.builder, part, parent=(self, box))

    @property
    def T(self) -> Traced:
        """The transpose: all axes in reverse."""
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int]) -> Traced:
        """Return the axes in another order; in reverse without one."""
        given = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
        order = tuple(given) or tuple(reversed(range(self.ndim)))
        return self.apply("transpose", axes=order)

    def reshape(
        self,
        *shape: int | Sequence[int],
        valid_shape: Sequence[int] | None = None,
        inplace: bool = False,
    ) -> Traced:
        """Return the same elements in another shape; one extent may be -1.

        With `inplace` they are in the same memory: what is written to one tensor is written to
        both. What is there of a partial tensor follows from it, whatever `valid_shape` says.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
        other = self.apply("reshape", shape=tuple(given))
        if inplace:
            if self._memory is None:
                self._memory = _Memory(self, [self])
            self._memory.members.append(other)
            other._memory = self._memory
        return other

    def _catch_up(self) -> None:
        """Take what was written to a tensor over the same elements."""
        if self._memory is None or self._memory.latest is self:
            return
        latest = self._memory.latest
        with self.builder.at(here()):
            self._value = latest.value.reshape(*self.shape)
        self._writes = []

    def apply(self, operator: str, *others: Operand, **settings: object) -> Traced:
        """Return an operator's result with this tensor as its first operand."""
        return new_value(self.builder, operator, self, *others, **settings)

    # Writing

    def __setitem__(self, key: object, value: Operand) -> None:
        if self.is_open and isinstance(value, Traced):
            self.move(value)
            return
        keys = self._keys(key)
        box, shape = self._box(keys)
        with self.builder.at(here()):
            given = value.value if isinstance(value, Traced) else self.builder.constant(value)
            if given.dtype != self.dtype:
                given = given.astype(self.dtype)
            wide = tuple(b - a for a, b in box)
            if isinstance(value, Traced) and value.is_partial:
                # Only what is there is written.
                self._holds_parts = True
                if value.shape == shape:
                    shape = extents(given)
                    wide = with_ones(shape, value.shape, wide)
                    box = tuple((a, a + there) for (a, _), there in zip(box, wide, strict=True))
            if tuple(given.shape) != shape and isinstance(value, Traced):
                box, shape = _until(keys, box, shape, extents(given))
                wide = tuple(b - a for a, b in box)
            if tuple(given.shape) != shape:
                _check_fits(tuple(int(e) for e in given.shape), shape)
                given = given.apply("broadcast_to", shape=shape)
            if shape != wide:
                given = given.reshape(*wide)
        self._write(box, given)

    def _write(self, box: Box, value: Value) -> None:
        self.is_written = True
        if self._memory is not None:
            self._catch_up()
            self._memory.latest = self
            for member in self._memory.members:
                member.is_written = True
        self._writes.append(_Write(box, value))
        if self._parent is not None:
            # NumPy's slices are views: what is written to one is written to the whole.
            whole, place = self._parent
            if len(place) == len(box):
                moved = tuple((o + a, o + b) for (a, b), (o, _) in zip(box, place, strict=True))
                whole._write(moved, value)

    def _in_place(self, operator: str, other: Operand) -> Traced:
        given = other.shape if isinstance(other, Traced) else ()
        padded = (1,) * (self.ndim - len(given)) + given
        fits = len(given) <= self.ndim and all(
            g in (1, own) for g, own in zip(padded, self.shape, strict=False)
        )
        if not fits:
            raise GraphError(
                f"a tensor of {self.shape} cannot take {given} elements in place",
                location=here(),
                help="a tile at the edge is smaller than the others: allocate it as small,"
                " min(TILE, extent - start) along each axis",
            )
        result = self.apply(operator, other)
        self[...] = result
        return self

    def __iadd__(self, other: Operand) -> Traced:
        return self._in_place("add", other)

    def __isub__(self, other: Operand) -> Traced:
        return self._in_place("sub", other)

    def __imul__(self, other: Operand) -> Traced:
        return self._in_place("mul", other)

    def __itruediv__(self, other: Operand) -> Traced:
        return self._in_place("div", other)

    def _keys(self, key: object) -> list[object]:
        """Return an index of each axis."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(each is Ellipsis for each in keys):
            at = next(i for i, each in enumerate(keys) if each is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        keys += [slice(None)] * (self.ndim - len(keys))
        if len(keys) > self.ndim:
            raise GraphError(f"{len(keys)} indices for {self.ndim} axes", location=here())
        return keys

    def _box(self, keys: Sequence[object]) -> tuple[Box, tuple[int, ...]]:
        """Return the part that indices name, and its shape without the axes of whole numbers."""
        box: list[tuple[int, int]] = []
        shape: list[int] = []
        for axis, (each, extent) in enumerate(zip(keys, self.shape, strict=True)):
            if isinstance(each, slice):
                start, stop, step = each.indices(extent)
                if step != 1:
                    raise GraphError(f"a step of {step} cannot be traced", location=here())
                box.append((start, max(start, stop)))
                shape.append(max(0, stop - start))
            elif isinstance(each, int) and not isinstance(each, bool):
                if not -extent <= each < extent:
                    raise GraphError(
                        f"index {each} is outside of axis {axis}, which has {extent} elements",
                        location=here(),
                        help="pad the tensor, or stop the loop earlier",
                    )
                box.append((each % extent, each % extent + 1))
            else:
                raise GraphError(
                    f"an index of type {type(each).__name__} cannot be traced",
                    location=here(),
                    help="use whole numbers, slices or `...`; pypto.gather looks up by a tensor",
                )
        return tuple(box), tuple(shape)

    # By name, as the public project's tensors have it

    @property
    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    @property
    def id(self) -> int:
        """A number that no other tensor of the program has."""
        return id(self)

    def move(self, other: Traced) -> None:
        """Take another tensor's elements; a part of a tensor then is a tensor of its own."""
        if self._parent is None and not self.is_open:
            self[...] = other
            return
        self.is_open = False
        self._parent = self._memory = None
        self._value, self._writes = other._value, list(other._writes)
        self._holds_parts = other._holds_parts
        self.shape, self.dtype = other.shape, other.dtype

    def set_cache_policy(self, policy: object, value: bool) -> None:
        """Say how the chip caches it, which changes no result."""
        self._cache_policies[policy] = bool(value)

    def get_cache_policy(self, policy: object) -> bool:
        """Return what was said of the cache; False where nothing was."""
        return self._cache_policies.get(policy, False)

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"opkit has no pypto.Tensor.{name}", name=name, obj=self)
        return functools.partial(FUNCTIONS[name], self)

    # Arithmetic

    def __add__(self, other: Operand) -> Traced:
        return self.apply("add", other)

    def __radd__(self, other: Operand) -> Traced:
        return new_value(self.builder, "add", other, self)

    def __sub__(self, other: Operand) -> Traced:
        return self.apply("sub", other)

    def __rsub__(self, other: Operand) -> Traced:
        return new_value(self.builder, "sub", other, self)

    def __mul__(self, other: Operand) -> Traced:
        return self.apply("mul", other)

    def __rmul__(self, other: Operand) -> Traced:
        return new_value(self.builder, "mul", other, self)

    def __truediv__(self, other: Operand) -> Traced:
        return self.apply("div", other)

    def __rtruediv__(self, other: Operand) -> Traced:
        return new_value(self.builder, "div", other, self)

    def __matmul__(self, other: Traced) -> Traced:
        return self.apply("matmul", other)

    def __pow__(self, other: Operand) -> Traced:
        return self.apply("pow", other)

    def __lshift__(self, other: Operand) -> Traced:
        return self._of("bitwise_left_shift", other)

    def __rshift__(self, other: Operand) -> Traced:
        return self._of("bitwise_right_shift", other)

    def _of(self, function: str, other: Operand) -> Traced:
        return FUNCTIONS[function](self, other)  # type: ignore[no-any-return]

    def __neg__(self) -> Traced:
        return self.apply("neg")

    def __lt__(self, other: Operand) -> Traced:
        return self.apply("less", other)

    def __le__(self, other: Operand) -> Traced:
        return self.apply("less_equal", other)

    def __gt__(self, other: Operand) -> Traced:
        return self.apply("greater", other)

    def __ge__(self, other: Operand) -> Traced:
        return self.apply("greater_equal", other)

    def __eq__(self, other: object) -> Any:
        return self._compared("equal", other, NotImplemented)

    def __ne__(self, other: object) -> Any:
        return self._compared("not_equal", other, NotImplemented)

    def _compared(self, operator: str, other: object, otherwise: Any) -> Any:
        """Return the comparison with a tensor or a number; of what else, `otherwise`."""
        if isinstance(other, Element):
            other = other.value
        return self.apply(operator, other) if isinstance(other, Traced | int | float) else otherwise

    __hash__ = object.__hash__

    # What a value that is not there yet cannot do

    def __bool__(self) -> bool:
        raise GraphError(
            "an `if` on a tensor's values cannot be traced: they are not known yet",
            location=here(),
            help="choose with pypto.where(condition, a, b)",
        )

    def __iter__(self) -> Iterator[Traced]:
        raise GraphError(
            "a loop over a tensor cannot be traced",
            location=here(),
            help="loop over range(x.shape[0]) and index, or use operators on the whole tensor",
        )

    def __float__(self) -> float:
        raise GraphError(
            "a tensor's value is not known while the program is traced",
            location=here(),
            help="keep it a tensor; print results after the call",
        )

    __int__ = __index__ = __float__

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<pypto tensor {self.dtype}{list(self.shape)}>"


def new_value(builder: GraphBuilder, operator: str, *operands: Any, **settings: object) -> Traced:
    """Return an operator's result, at the user's line."""
    location = here()
    operands = tuple(each.value if isinstance(each, Element) else each for each in operands)
    if any(isinstance(each, Traced) and each.is_partial for each in operands):
        with builder.at(location):
            parts = [
                Partial(each.value, each.shape) if isinstance(each, Traced) else each
                for each in operands
            ]
            value, shape = partial_result(builder, operator, parts, settings)
        return Traced(builder, value, shape=shape)
    given = [each.value if isinstance(each, Traced) else each for each in operands]
    with builder.at(location):
        return Traced(builder, builder.apply(operator, *given, **settings))


def _until(
    keys: Sequence[object], box: Box, shape: tuple[int, ...], given: tuple[int, ...]
) -> tuple[Box, tuple[int, ...]]:
    """Return a part whose open slices end where a tile does: writing to them is `assemble`.

    `out[i * 4:, 0:] = tile` has an offset and no end, as `out[i * 4:, :]`; `out[:]` has no offset.
    """
    named = [axis for axis, key in enumerate(keys) if isinstance(key, slice)]
    slices = [key for key in keys if isinstance(key, slice)]
    has_offset = any(key.start is not None and key.stop is None for key in slices)
    if len(given) != len(named) or not has_offset:
        return box, shape
    places, extents = list(box), list(shape)
    for at, (axis, extent) in enumerate(zip(named, given, strict=True)):
        key = keys[axis]
        is_open = isinstance(key, slice) and key.stop is None
        if is_open and extent < extents[at]:
            start = places[axis][0]
            places[axis], extents[at] = (start, start + extent), extent
    return tuple(places), tuple(extents)


def _check_fits(given: tuple[int, ...], place: tuple[int, ...]) -> None:
    padded = (1,) * (len(place) - len(given)) + given
    if len(given) > len(place) or any(g not in (1, p) for g, p in zip(padded, place, strict=True)):
        raise GraphError(
            f"{given} elements are written to a part of {place}",
            location=here(),
            help="a tile at the edge is smaller than the others: cut the value to the part,"
            " or allocate it with min(TILE, extent - start)",
        )
