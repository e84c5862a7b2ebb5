"""Block pointers as values of Triton's front end: a load through one is a masked load of a tile.

Newer Triton releases have no block pointers of their own any more, and programs for this chip are
full of them; here they are base, extents, strides and offsets, carried through loops as such.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import triton.language as tl
from triton.language import core

__all__ = ["STATIC", "BlockPointer", "BlockPointerType", "descriptor"]


class BlockPointerType(core.base_type):  # type: ignore[misc]
    """What loops and branches know of a block pointer."""

    def __init__(self, parts: Sequence[Any], block_shape: Sequence[int], padding: str) -> None:
        self.parts = tuple(parts)
        self.block_shape = tuple(block_shape)
        self.padding = padding

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[BlockPointer, int]:
        values = []
        for part in self.parts:
            value, cursor = part._unflatten_ir(handles, cursor)
            values.append(value)
        return BlockPointer(values, self.block_shape, self.padding), cursor

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        for part in self.parts:
            part._flatten_ir_types(builder, out)

    def __str__(self) -> str:
        return f"block_pointer<{list(self.block_shape)}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BlockPointerType)
            and self.parts == other.parts
            and self.block_shape == other.block_shape
            and self.padding == other.padding
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def element_ty(self) -> Any:
        """What it points to: a block."""
        return core.block_type(self.parts[0].element_ty, list(self.block_shape))

    @property
    def scalar(self) -> Any:
        """A pointer to an element."""
        return self.parts[0]

    def mangle(self) -> str:
        """Return what tells functions for different block pointers apart."""
        extents = "_".join(map(str, self.block_shape))
        return f"BP{self.parts[0].mangle()}S{extents}{self.padding}"


class BlockPointer(core.base_value):  # type: ignore[misc]
    """Base, then an extent, a stride and an offset a dimension."""

    def __init__(self, parts: Sequence[Any], block_shape: Sequence[int], padding: str = "") -> None:
        self.parts = list(parts)
        self.block_shape = tuple(block_shape)
        self.padding = padding

    @property
    def type(self) -> BlockPointerType:
        """The type that goes through loops."""
        parts = [part.type for part in self.parts]
        return BlockPointerType(parts, self.block_shape, self.padding)

    @property
    def dtype(self) -> Any:
        """What Triton's own block pointers say: a pointer to a block."""
        return core.pointer_type(self.type.element_ty)

    @property
    def element(self) -> Any:
        """The data type of an element."""
        return self.parts[0].type.element_ty

    def _set_name(self, builder: Any, name: str) -> None:
        pass

    def _flatten_ir(self, handles: list[Any]) -> None:
        for part in self.parts:
            part._flatten_ir(handles)

    @core.builtin  # type: ignore[untyped-decorator]
    def load(self, offsets: Any, _semantic: Any = None) -> Any:
        """A descriptor's load: the tile at offsets, zeros outside."""
        moved = _moved(self, offsets, _semantic, is_from_start=True)
        return _load(moved, _semantic, range(len(self.block_shape)), self.padding or "zero")

    @core.builtin  # type: ignore[untyped-decorator]
    def store(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """A descriptor's store: what lies inside of the tensor."""
        moved = _moved(self, offsets, _semantic, is_from_start=True)
        return _store(moved, value, _semantic, range(len(self.block_shape)))

    def __getattr__(self, name: str) -> Any:
        if name == "advance":
            return core.advance
        raise AttributeError(name)


def _integer(value: Any, semantic: Any, dtype: Any) -> Any:
    value = core._unwrap_if_constexpr(value)
    return semantic.cast(semantic.to_tensor(value), dtype)


def _words(value: Any) -> list[Any]:
    value = core._unwrap_if_constexpr(value)
    return list(value) if hasattr(value, "__iter__") else [value]


def _made(
    semantic: Any,
    base: Any,
    shape: Any,
    strides: Any,
    offsets: Any,
    block_shape: Any,
    order: Any = (),
) -> BlockPointer:
    extents = [int(core._unwrap_if_constexpr(each)) for each in _words(block_shape)]
    if not base.type.is_ptr():
        raise ValueError("make_block_ptr: base is no pointer to an element")
    lists = [_words(shape), _words(strides), _words(offsets)]
    if any(len(each) != len(extents) for each in lists):
        raise ValueError("make_block_ptr: shape, strides, offsets and block_shape differ in length")
    parts = [base]
    for each in lists:
        parts += [_integer(value, semantic, tl.int64) for value in each]
    return BlockPointer(parts, extents)


def descriptor(
    semantic: Any, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any
) -> BlockPointer:
    """Return what `make_tensor_descriptor` gives: a block pointer whose tiles start where asked."""
    made = _made(semantic, base, shape, strides, [0] * len(_words(shape)), block_shape)
    made.padding = core._unwrap_if_constexpr(padding_option) or "zero"
    return made


def _moved(
    pointer: BlockPointer, offsets: Any, semantic: Any, *, is_from_start: bool = False
) -> BlockPointer:
    rank = len(pointer.block_shape)
    given = _words(offsets)
    if len(given) != rank:
        raise ValueError(f"{rank} offsets are needed, and there are {len(given)}")
    parts = list(pointer.parts)
    for axis, offset in enumerate(given):
        at = 1 + 2 * rank + axis
        step = _integer(offset, semantic, tl.int64)
        parts[at] = step if is_from_start else semantic.add(parts[at], step, False)
    return BlockPointer(parts, pointer.block_shape, pointer.padding)


def _addresses(pointer: BlockPointer, semantic: Any, checked: Sequence[int]) -> tuple[Any, Any]:
    """Return the pointers of a tile's elements, and the mask of those that are checked."""
    rank = len(pointer.block_shape)
    address, mask = pointer.parts[0], None
    address = semantic.splat(address, [1] * rank)
    for axis, extent in enumerate(pointer.block_shape):
        index = semantic.cast(semantic.arange(0, extent), tl.int64)
        for other in range(rank):
            if other != axis:
                index = semantic.expand_dims(index, other)
        index = semantic.add(index, pointer.parts[1 + 2 * rank + axis], False)
        if axis in checked:
            inside = semantic.less_than(index, pointer.parts[1 + axis])
            inside = semantic.and_(inside, semantic.greater_equal(index, semantic.to_tensor(0)))
            mask = inside if mask is None else semantic.and_(mask, inside)
        step = semantic.mul(index, pointer.parts[1 + rank + axis], False)
        address = semantic.add(address, step, False)
    if mask is not None:
        mask = semantic.broadcast_impl_shape(mask, list(pointer.block_shape))
    return address, mask


def _checked(value: Any, rank: int) -> list[int]:
    return [int(core._unwrap_if_constexpr(axis)) % rank for axis in _words(value)]


def _load(pointer: BlockPointer, semantic: Any, checked: Sequence[int], padding: str) -> Any:
    address, mask = _addresses(pointer, semantic, checked)
    other = None
    if mask is not None:
        # Outside of the tensor nothing is read; without a padding the values are undefined.
        filler = float("nan") if padding == "nan" else 0
        other = semantic.cast(semantic.to_tensor(filler), pointer.element)
    return core.load(address, mask, other, _semantic=semantic)


def _store(pointer: BlockPointer, value: Any, semantic: Any, checked: Sequence[int]) -> Any:
    address, mask = _addresses(pointer, semantic, checked)
    value = semantic.to_tensor(core._unwrap_if_constexpr(value))
    value = semantic.broadcast_impl_shape(value, list(pointer.block_shape))
    value = semantic.cast(value, pointer.element)
    return core.store(address, value, mask, _semantic=semantic)


def _arguments(generator: Any, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    keywords = dict(generator.visit(keyword) for keyword in node.keywords)
    given: list[Any] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            given += _words(generator.visit(each.value))
        else:
            given.append(generator.visit(each))
    return given, keywords


def _make_block_ptr(generator: Any, node: ast.Call) -> Any:
    given, keywords = _arguments(generator, node)
    return _made(generator.semantic, *given, **keywords)


def _advance(generator: Any, node: ast.Call) -> Any:
    given, keywords = _arguments(generator, node)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "advance" and len(given) == 1:
        owner = generator.visit(node.func.value)
        if isinstance(owner, BlockPointer):
            given.insert(0, owner)
    pointer = given.pop(0) if given else keywords.pop("base")
    offsets = given.pop(0) if given else keywords.pop("offsets")
    if not isinstance(pointer, BlockPointer):
        raise ValueError("advance: no block pointer")
    return _moved(pointer, offsets, generator.semantic)


# What the front end's own load and store do not know, or no longer know.
_OWN = ("boundary_check", "padding_option")


def _load_of(generator: Any, node: ast.Call) -> Any:
    given, keywords = _arguments(generator, node)
    pointer = given[0] if given else keywords["pointer"]
    if not isinstance(pointer, BlockPointer):
        for name in _OWN:
            keywords.pop(name, None)
        return generator.call_Function(node, core.load, given, keywords)
    rest = dict(zip(("mask", "other", "boundary_check", "padding_option"), given[1:], strict=False))
    rest |= keywords
    checked = _checked(rest.get("boundary_check") or (), len(pointer.block_shape))
    padding = core._unwrap_if_constexpr(rest.get("padding_option")) or ""
    return _load(pointer, generator.semantic, checked, padding)


def _store_of(generator: Any, node: ast.Call) -> Any:
    given, keywords = _arguments(generator, node)
    pointer = given[0] if given else keywords["pointer"]
    if not isinstance(pointer, BlockPointer):
        for name in _OWN:
            keywords.pop(name, None)
        return generator.call_Function(node, core.store, given, keywords)
    rest = dict(zip(("value", "mask", "boundary_check"), given[1:], strict=False)) | keywords
    checked = _checked(rest.get("boundary_check") or (), len(pointer.block_shape))
    return _store(pointer, rest["value"], generator.semantic, checked)


STATIC: dict[object, Callable[[Any, ast.Call], Any]] = {
    core.load: _load_of,
    core.store: _store_of,
    core.make_block_ptr: _make_block_ptr,
    core.advance: _advance,
}
"""What Triton's code generator calls instead of its own functions while it reads for opkit."""
