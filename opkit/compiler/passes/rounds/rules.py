"""What the operators of each round become for all of them, by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ...ir import Node, Value, normal_axes
from ...ops import OPERATORS
from .packs import Pack, beside, moved, reshaped

__all__ = ["added_products", "has_rule", "pack_of", "side_by_side"]

Operands: TypeAlias = Sequence["Pack | Value"]
Rule: TypeAlias = Callable[[Node, Operands], Pack]


def has_rule(operator: str) -> bool:
    """Return whether an operator can be applied to all rounds at once."""
    return operator in _RULES or OPERATORS[operator].kind in ("elementwise", "reduction", "scan")


def pack_of(node: Node, operands: Operands) -> Pack:
    """Return what a node of one round computes in all of them.

    Args:
        node: of the first round; of the others only the operands differ.
        operands: one Pack at least.
    """
    rule = _RULES.get(node.operator)
    if rule is not None:
        return rule(node, operands)
    return (_elementwise if OPERATORS[node.operator].kind == "elementwise" else _along)(
        node, operands
    )


def _first(operands: Operands) -> Pack:
    """Return the largest pack: the others come to its place."""
    return max(
        (each for each in operands if isinstance(each, Pack)),
        key=lambda pack: int(pack.value.tensor.size),
    )


def _aligned(operands: Operands, inner: int) -> list[Value]:
    return [
        moved(each, inner).value if isinstance(each, Pack) else beside(each, inner)
        for each in operands
    ]


def _applied(node: Node, values: Sequence[Value], inner: int, **settings: object) -> Pack:
    first, *others = values
    given = {**node.settings, **settings}
    return Pack(first.apply(node.operator, *others, **given), inner)


def _elementwise(node: Node, operands: Operands) -> Pack:
    inner = _first(operands).inner
    return _applied(node, _aligned(operands, inner), inner)


def _by_rows(node: Node, operands: Operands) -> Pack:
    """Norms of the last axis, which stays the last."""
    inner = len(node.output.shape)
    return _applied(node, _aligned(operands, inner), inner)


def _shifted(axis: int, pack: Pack) -> int:
    return axis if axis < pack.place else axis + 1


def _along(node: Node, operands: Operands) -> Pack:
    """Operators along axes of one tensor."""
    (pack,) = operands
    assert isinstance(pack, Pack)
    rank = len(pack.shape)
    given = node.settings["axis"]
    axes = normal_axes(given, rank)
    now = tuple(_shifted(axis, pack) for axis in axes)
    is_one = isinstance(given, int)
    lost = 0
    if len(node.output.shape) < rank:
        lost = sum(axis >= pack.place for axis in axes)
    return _applied(node, [pack.value], pack.inner - lost, axis=now[0] if is_one else now)


def _reshape(node: Node, operands: Operands) -> Pack:
    return reshaped(_first(operands), node.output.shape)


def _broadcast(node: Node, operands: Operands) -> Pack:
    pack, shape = _first(operands), node.output.shape
    place = len(shape) - pack.inner
    return _applied(
        node, [pack.value], pack.inner, shape=(*shape[:place], pack.count, *shape[place:])
    )


def _transpose(node: Node, operands: Operands) -> Pack:
    # In front, where a product takes what is transposed behind it.
    pack = moved(_first(operands), len(node.output.shape))
    axes = node.settings["axes"]
    return _applied(node, [pack.value], pack.inner, axes=(0, *(axis + 1 for axis in axes)))


def _slice(node: Node, operands: Operands) -> Pack:
    pack = _first(operands)
    axis = node.settings["axis"]
    return _applied(node, [pack.value], pack.inner, axis=_shifted(axis, pack))


def _pad(node: Node, operands: Operands) -> Pack:
    pack = _first(operands)
    widths = node.settings["widths"]
    wide = (*widths[: pack.place], (0, 0), *widths[pack.place :])
    return _applied(node, [pack.value], pack.inner, widths=wide)


def _concat(node: Node, operands: Operands) -> Pack:
    axis = node.settings["axis"]
    return side_by_side(operands, axis % len(node.output.shape))


def side_by_side(operands: Operands, axis: int) -> Pack:
    """Return what the rounds join along an axis of their values."""
    first = _first(operands)
    values = []
    for each in operands:
        if isinstance(each, Pack):
            values.append(moved(each, first.inner).value)
            continue
        place = each.ndim - first.inner
        wide = (*each.shape[:place], first.count, *each.shape[place:])
        values.append(beside(each, first.inner).apply("broadcast_to", shape=wide))
    joined = values[0].builder.apply("concat", *values, axis=_shifted(axis, first))
    return Pack(joined, first.inner)


def _take(node: Node, operands: Operands) -> Pack:
    table, places = operands
    assert isinstance(table, Value) and isinstance(places, Pack)
    axis = node.settings["axis"]
    behind = table.ndim - 1 - axis % table.ndim
    return _applied(node, [table, places.value], places.inner + behind)


def _matmul(node: Node, operands: Operands) -> Pack:
    a, b = operands
    flags = node.settings
    rows, columns = node.output.shape[-2:]
    if len(node.output.shape) == 2:
        # All rounds are rows, or columns, of one product.
        if isinstance(a, Pack) and isinstance(b, Value) and b.ndim == 2:
            turned = bool(flags["transpose_a"])
            a = moved(a, 1 if turned else 2)
            inner = a.shape[0] if turned else a.shape[1]
            total = a.count * rows
            flat = a.value.reshape(*((inner, total) if turned else (total, inner)))
            result = flat.apply("matmul", b, **flags)
            return Pack(result.reshape(a.count, rows, columns), 2)
        if isinstance(b, Pack) and isinstance(a, Value) and a.ndim == 2:
            turned = bool(flags["transpose_b"])
            b = moved(b, 2 if turned else 1)
            inner = b.shape[1] if turned else b.shape[0]
            total = b.count * columns
            flat = b.value.reshape(*((total, inner) if turned else (inner, total)))
            result = a.apply("matmul", flat, **flags)
            return Pack(result.reshape(rows, b.count, columns), 1)
    # In front of the batches, with which it broadcasts.
    inner = len(node.output.shape)
    values = [moved(each, inner).value if isinstance(each, Pack) else each for each in operands]
    return _applied(node, values, inner)


def added_products(node: Node, operands: Operands) -> Value | None:
    """Return the sum over the rounds of a product; None where it is no sum along more of the axis
    that the product sums along."""
    a, b = operands
    if not isinstance(a, Pack) or not isinstance(b, Pack):
        return None
    if len(a.shape) != 2 or len(b.shape) != 2:
        return None
    flags = node.settings
    values = []
    for pack, is_first in ((a, flags["transpose_a"]), (b, not flags["transpose_b"])):
        now = moved(pack, 2 if is_first else 1)
        shape = now.shape
        wide = (now.count * shape[0], shape[1]) if is_first else (shape[0], now.count * shape[1])
        values.append(now.value.reshape(*wide))
    return values[0].apply("matmul", values[1], **flags)


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("softmax", "log_softmax", "topk", "topk_places", "sort", "argsort"), _along),
    **dict.fromkeys(("argmax", "argmin"), _along),
    **dict.fromkeys(("layer_norm", "rms_norm"), _by_rows),
    "reshape": _reshape,
    "broadcast_to": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "take": _take,
    "matmul": _matmul,
}
