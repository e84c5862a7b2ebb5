"""Extents of tensors: whole numbers, or sympy expressions over named sizes.

sympy is imported where a named size turns up, and not before: programs of fixed shapes never pay
for it.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from opkit.errors import UsageError

if TYPE_CHECKING:
    import sympy

    Dimension: TypeAlias = int | sympy.Expr
else:
    Dimension: TypeAlias = object
Shape: TypeAlias = tuple[Dimension, ...]

__all__ = [
    "Dimension",
    "Shape",
    "bind_shapes",
    "broadcast_shapes",
    "computed_dimension",
    "computed_size",
    "dimension",
    "evaluate",
    "fixed_shape",
    "fixed_size",
    "is_dimension",
    "is_fixed",
    "is_one",
    "normal_axes",
    "product",
    "quotient",
    "same",
    "shape_text",
    "step_size",
]


def dimension(name: str) -> Dimension:
    """Return a named size, known when the kernel is launched; a positive whole number."""
    import sympy

    return sympy.Symbol(name, integer=True, positive=True)


def step_size(tensor: str) -> Dimension:
    """Return how many elements of an input lie from one row to the next, a number of the launch:
    those of a row, or 0 where one row is for all."""
    return dimension(f"{tensor} step")


def computed_dimension(text: str) -> Dimension:
    """Return a size that is written as a name, or computed of names by `+ - * //`, and by `/` of
    multiples."""
    if text.isidentifier():
        return dimension(text)
    found: Dimension = computed_size(ast.parse(text, mode="eval").body, dimension)
    return found


def computed_size(node: ast.expr, size_of: Callable[[str], Any]) -> Any:
    """Return what an expression of names, whole numbers, `+ - * //`, and `/` of multiples is.

    Raises:
        ValueError: it is made of something else, or `/` leaves a rest.
        KeyError: what `size_of` raises for a name.
    """
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return size_of(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -computed_size(node.operand, size_of)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = (computed_size(each, size_of) for each in (node.left, node.right))
        return _OPERATIONS[type(node.op)](left, right)
    raise ValueError(f'"{ast.unparse(node)}" is no size')


def _whole_quotient(left: Any, right: Any) -> Any:
    """Return a size divided by another, of which it is a multiple."""
    if not isinstance(left, int) or not isinstance(right, int):
        return quotient(left, right)
    if right == 0 or left % right:
        raise ValueError(f"{left} is no multiple of {right}")
    return left // right


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub},
    **{ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Div: _whole_quotient},
}


def is_dimension(value: object) -> bool:
    """Return whether a value is an expression over named sizes."""
    return hasattr(value, "free_symbols")


def is_fixed(value: Dimension) -> bool:
    """Return whether a size is known now."""
    return isinstance(value, int)


def is_one(value: Dimension) -> bool:
    """Return whether a size is 1 for certain: such an axis broadcasts."""
    return isinstance(value, int) and value == 1


def same(left: Dimension, right: Dimension) -> bool:
    """Return whether two sizes are equal for certain."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return bool(left == right) or _is_zero(left - right)


@functools.lru_cache(maxsize=4096)
def _is_zero(difference: Dimension) -> bool:
    import sympy

    return bool(sympy.simplify(difference) == 0)


def product(values: Iterable[Dimension]) -> Dimension:
    """Return the product of sizes; 1 for none."""
    total: Dimension = 1
    for value in values:
        total = total * value
    return total


@functools.lru_cache(maxsize=4096)
def quotient(total: Dimension, part: Dimension) -> Dimension:
    """Return a size divided by another, in the simplest form; the caller knows that it divides."""
    import sympy

    return sympy.simplify(sympy.sympify(total) / part)


def evaluate(value: Dimension, sizes: Mapping[str, int]) -> int:
    """Return a size as a number.

    Raises:
        UsageError: it is no whole number for these sizes.
    """
    if isinstance(value, int):
        return value
    try:
        number = _function_of(value)(sizes)
    except KeyError as err:
        raise UsageError(f"the size {value} is made of {err.args[0]}, which is not known") from None
    except ZeroDivisionError:
        raise UsageError(f"the size {value} divides by zero") from None
    if number != int(number):
        raise UsageError(f"the size {value} is {number}, which is no whole number")
    return int(number)


def fixed_size(value: Dimension) -> int:
    """Return a size that is known now as a number.

    Raises:
        UsageError: it is known only when the kernel is launched, or is no whole number.
    """
    return evaluate(value, {})


def fixed_shape(shape: Iterable[Dimension]) -> tuple[int, ...]:
    """Return sizes that are known now as numbers; raises as `fixed_size` does."""
    return tuple(fixed_size(extent) for extent in shape)


@functools.lru_cache(maxsize=4096)
def _function_of(value: Dimension) -> Callable[[Mapping[str, int]], Any]:
    """Return a function from the named sizes to an expression's value, exact: `subs` takes
    milliseconds."""
    import sympy

    joined: dict[Any, Callable[[list[Any]], Any]] = {
        sympy.Add: sum,
        sympy.Mul: math.prod,
        sympy.Pow: lambda parts: Fraction(parts[0]) ** parts[1],
        sympy.floor: lambda parts: math.floor(parts[0]),
        sympy.ceiling: lambda parts: math.ceil(parts[0]),
        sympy.Mod: lambda parts: parts[0] % parts[1],
        sympy.Max: max,
        sympy.Min: min,
    }
    expression = sympy.sympify(value)
    if expression.is_Symbol:
        return operator.itemgetter(expression.name)
    if expression.is_Rational:
        number = Fraction(int(expression.p), int(expression.q))
        whole = int(number) if number.denominator == 1 else number
        return lambda sizes: whole
    join = joined.get(expression.func)
    if join is None:
        raise UsageError(f"{expression} is no size")
    parts = [_function_of(part) for part in expression.args]
    return lambda sizes: join([part(sizes) for part in parts])


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that NumPy's broadcasting gives.

    Raises:
        UsageError: the shapes do not broadcast.
    """
    if all(shape == shapes[0] for shape in shapes[1:]):
        return shapes[0]
    rank = max(len(shape) for shape in shapes)
    result: list[Dimension] = []
    for axis in range(rank):
        extent: Dimension = 1
        for shape in shapes:
            at = axis - (rank - len(shape))
            if at < 0 or is_one(shape[at]):
                continue
            if is_one(extent):
                extent = shape[at]
            elif not same(extent, shape[at]):
                text = " and ".join(shape_text(each) for each in shapes)
                raise UsageError(
                    f"shapes {text} do not broadcast",
                    help="axes, counted from the last, must be equal or 1",
                )
        result.append(extent)
    return tuple(result)


def shape_text(shape: Sequence[Dimension]) -> str:
    """Return a shape as people write it, such as `[M, 4096]`."""
    return "[" + ", ".join(str(each) for each in shape) + "]"


@functools.lru_cache(maxsize=1024)
def _solve(pattern: Dimension, actual: int) -> tuple[tuple[str, int], ...] | None:
    import sympy

    assert not isinstance(pattern, int)
    symbols = list(pattern.free_symbols)
    if len(symbols) != 1:
        return ()
    if pattern.is_Symbol:
        return ((pattern.name, actual),)
    # Named sizes are positive, and yet a call's may be 0.
    size = sympy.Dummy(integer=True, nonnegative=True)
    solutions = sympy.solve(pattern.subs(symbols[0], size) - actual, size)
    found = [each for each in solutions if each.is_Integer and each >= 0]
    return ((symbols[0].name, int(found[0])),) if len(found) == 1 else None


def bind_shapes(
    tensors: Iterable[tuple[str, Shape]], actual: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Return the named sizes of a call, from the shapes that the arrays have.

    Raises:
        UsageError: an array has another rank or another size than its tensor.
    """
    sizes: dict[str, int] = {}
    rows = [(name, shape, tuple(actual[name])) for name, shape in tensors]
    for name, shape, got in rows:
        if len(shape) != len(got):
            raise UsageError(
                f'"{name}" has {len(got)} axes, {list(got)}, expected {shape_text(shape)}'
            )
        for pattern, extent in zip(shape, got, strict=True):
            if isinstance(pattern, int):
                continue
            for symbol, value in _solve(pattern, int(extent)) or ():
                sizes.setdefault(symbol, value)
    for name, shape, got in rows:
        for axis, (pattern, extent) in enumerate(zip(shape, got, strict=True)):
            wanted = pattern if isinstance(pattern, int) else evaluate(pattern, sizes)
            if wanted != extent:
                text = f"{pattern}" if isinstance(pattern, int) else f"{pattern} = {wanted}"
                raise UsageError(
                    f'"{name}" has {extent} elements along axis {axis}, expected {text}',
                    help=f"pass an array of shape {shape_text(shape)}",
                )
    return sizes


def normal_axes(axis: object, rank: int) -> tuple[int, ...]:
    """Return axes as increasing numbers from 0; all for None.

    Raises:
        UsageError: the tensor has no such axis, or one is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    wanted = axis if isinstance(axis, tuple | list) else (axis,)
    found = []
    for each in wanted:
        if not isinstance(each, int) or not -rank <= each < rank:
            raise UsageError(f"axis {each} does not exist: there are {rank}")
        found.append(each % rank)
    if len(set(found)) != len(found):
        raise UsageError(f"axis {wanted} names one twice")
    return tuple(sorted(found))
