"""What formulas give for NumPy arrays, and shapes to try them on: the references of operators."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from opkit.errors import UsageError
from opkit.schema import axis_names

from ...ir import Attribute, Dimension, bind_shapes, computed_dimension, computed_size
from ...ops import joined_arrays, split_array
from ...passes import in_equal_form
from ...tracing import TensorSpec
from .graph import FormulaOutput, formula_graph

__all__ = ["evaluate_formulas", "shapes_at"]

_NUMPY_KINDS = {"b": "bool", "f": "float64", "i": "int64", "u": "int64"}
_KIND_OF = {bool: "bool", int: "int"}


def evaluate_formulas(
    outputs: Mapping[str, str],
    arrays: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, str] | None = None,
    axes: Mapping[str, Sequence[str | int]] | None = None,
    *,
    lists: Collection[str] = (),
    fast_math: bool = False,
) -> Any:
    """Return what formulas give for NumPy arrays: one array, or a tuple of them in order; a list of
    arrays for an output that is one.

    Fractions are computed in float64, whole numbers in int64 unless `dtypes` says in which type a
    tensor's wrap. This is NumPy, operator by operator; no kernel and no part of the compiler's
    lowering has to do with it.

    Args:
        outputs: the formula of each output.
        arrays: the inputs by name.
        attributes: numbers by name.
        dtypes: of inputs and outputs of whole numbers, by name.
        axes: names of the inputs' axes, for formulas that say them, and for lists.
        lists: the inputs and outputs that are lists of arrays.
        fast_math: simplify the formulas where NaN, infinities and signed zeros change.

    Raises:
        GraphError: a formula is wrong, or the arrays do not fit it.
        TypeError: an array holds no numbers.
        ValueError: the arrays of a list do not fit together, or a value of int64 is none of int32,
            in which kernels compute.
    """
    import numpy as np

    from ...tracing import apply_nodes

    types = dict(dtypes or {})
    all_axes = dict(axes or {})
    wide = {
        name: joined_arrays(array, all_axes[name]) if name in lists else np.asanyarray(array)
        for name, array in arrays.items()
    }
    for name, array in wide.items():
        if array.dtype.kind not in _NUMPY_KINDS:
            raise TypeError(f"{name} holds {array.dtype}, expected numbers")
        types.setdefault(name, _NUMPY_KINDS[array.dtype.kind])
    narrowed = [name for name in wide if (dtypes or {}).get(name) == "int64"]
    for name in narrowed:
        _check_narrow(name, wide[name])
    specs, sizes = _specs(wide, types, {} if lists else all_axes)
    given = dict(attributes or {})
    rows = [Attribute(name, _KIND_OF.get(type(v), "float"), v) for name, v in given.items()]
    wanted = [FormulaOutput(name, text, types.get(name, "")) for name, text in outputs.items()]
    named = {} if sizes else _named_sizes(wide, all_axes)
    graph = formula_graph("formula", specs, wanted, rows, sizes=named, narrowed=narrowed)
    graph = in_equal_form(graph, fast_math=True) if fast_math else graph
    found: dict[str, Any] = {
        name: array if array.dtype == types[name] else array.astype(types[name])
        for name, array in wide.items()
    }
    with np.errstate(all="ignore"):
        apply_nodes(graph, found, given, sizes)
    first = next((name for name in arrays if name in lists), "")
    results = tuple(
        split_array(found[tensor], arrays[first], all_axes[first])
        if name in lists
        else found[tensor]
        for name, tensor in graph.outputs
    )
    return results[0] if len(results) == 1 else results


def _specs(
    arrays: Mapping[str, Any], types: Mapping[str, str], axes: Mapping[str, Sequence[str | int]]
) -> tuple[list[TensorSpec], dict[str, int]]:
    """Return the inputs as the formulas' graph has them, and its named sizes.

    With the names of their axes what fits is what the names say, as in the kernel: another axis may
    happen to be as long. Without them, and where arrays do not fit them, axes are their lengths.
    """
    plain = [TensorSpec(name, tuple(a.shape), types[name]) for name, a in arrays.items()]
    if axes.keys() != arrays.keys():
        return plain, {}
    shapes: dict[str, tuple[Dimension, ...]] = {}
    for name, each in axes.items():
        rest = arrays[name].ndim - len(each) + 1
        lead = [f"leading{at}" for at in range(rest, 0, -1)] if each[:1] == ("...",) else []
        own = [*lead, *(axis for axis in each if axis != "...")]
        shapes[name] = tuple(a if isinstance(a, int) else computed_dimension(a) for a in own)
    actual = {name: arrays[name].shape for name in shapes}
    try:
        sizes = bind_shapes(shapes.items(), actual)
    except UsageError:
        return plain, {}
    return [TensorSpec(name, shape, types[name]) for name, shape in shapes.items()], sizes


def _named_sizes(
    arrays: Mapping[str, Any], axes: Mapping[str, Sequence[str | int]]
) -> dict[str, int]:
    """Return the lengths of named axes; `...` is first, and stands for what the others leave."""
    return {
        axis: extent
        for name, each in axes.items()
        for axis, extent in zip(reversed(each), reversed(arrays[name].shape), strict=False)
        if isinstance(axis, str) and axis.isidentifier()
    }


def _check_narrow(name: str, array: Any) -> None:
    ends = [int(array.min()), int(array.max())] if array.size else []
    for value in ends:
        if not -(2**31) <= value < 2**31:
            raise ValueError(
                f"{name} holds {value}, which int32, in which kernels compute, does not"
            )


# How many times the main shape's elements a tensor may have that has a name twice.
_SQUARE_LIMIT = 8
# Elements of an input that lengths beside a named size make large: four times those of the largest
# main shape.
_MOST_ELEMENTS = 1 << 22
# By how much a size grows at most to be a multiple.
_MOST_STEPS = 4096


def shapes_at(
    axes: Mapping[str, Sequence[str | int]],
    shape: Sequence[int],
    *,
    least: int = 0,
    sizes: Mapping[str, int] | None = None,
    squares: Sequence[Sequence[str]] = (),
    multiples: Mapping[str, str] | None = None,
) -> dict[str, tuple[int, ...]]:
    """Return a shape for each input whose axes have names, at a main shape.

    The main shape's last axes are the named sizes, in the order in which they first occur; what is
    left of it in front is `...`, or is multiplied into the first named size. A name that a tensor
    has twice is halved until the tensor holds about as many elements as the main shape; the first
    named size is divided by the lengths beside it where they make a very large tensor. No size is
    below `least`: what is empty has no largest element.

    Args:
        axes: of each input.
        shape: the main shape.
        least: what no size is below.
        sizes: what single sizes are not below.
        squares: the axes of outputs that have a name twice.
        multiples: what must be a multiple of what, each computed of sizes; sizes grow until it is.
    """
    floors = dict(sizes or {})
    all_axes = [axis for each in axes.values() for axis in each]
    named = [axis for axis in all_axes if axis != "..."]
    names = list(dict.fromkeys(name for axis in named for name in axis_names(axis)))
    given = (1,) * (len(names) - len(shape)) + tuple(shape)
    leading = tuple(max(least, extent) for extent in given[: len(given) - len(names)])
    found = dict(zip(names, given[len(leading) :], strict=True))
    if names and "..." not in all_axes:
        found[names[0]] *= math.prod(leading)
    found = {name: max(least, floors.get(name, 0), size) for name, size in found.items()}

    def extents(axis: str | int) -> tuple[int, ...]:
        if axis == "...":
            return leading
        if isinstance(axis, int):
            return (axis,)
        # Sizes that are divided without a rest become multiples last.
        text = axis.replace("//", "/").replace("/", "//")
        return (computed_size(ast.parse(text, mode="eval").body, found.__getitem__),)

    def of(each: Sequence[str | int]) -> tuple[int, ...]:
        return tuple(extent for axis in each for extent in extents(axis))

    most = _SQUARE_LIMIT * max(1, math.prod(shape))
    for each in (*axes.values(), *squares):
        for twice in [name for name in names if each.count(name) > 1]:
            lowest = max(1, floors.get(twice, 0))
            while found[twice] > lowest and math.prod(of(each)) > most:
                found[twice] = max(lowest, found[twice] // 2)
    for each in axes.values():
        if names and names[0] in each and math.prod(of(each)) > _MOST_ELEMENTS:
            fixed = math.prod(axis for axis in each if isinstance(axis, int))
            lowest = max(1, least, floors.get(names[0], 0))
            found[names[0]] = max(lowest, found[names[0]] // fixed)
    for total, part in (multiples or {}).items():
        _grow(found, leading, total, part)
    return {name: of(each) for name, each in axes.items()}


def _grow(found: dict[str, int], leading: Sequence[int], total: str, part: str) -> None:
    """Make sizes larger until one that is computed of them is a multiple of another."""
    tree, divisor = (ast.parse(text, mode="eval").body for text in (total, part))
    # What "..." stands for is its product; the sizes behind it fit by themselves.
    known = {"leading": math.prod(leading), **found}
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    # Of several the last axis grows: there is most to see along it.
    for name in [each for each in reversed(found) if each in read]:
        start = found[name]
        for more in range(_MOST_STEPS):
            sizes = {**known, name: start + more}
            by = computed_size(divisor, sizes.__getitem__)
            if by and computed_size(tree, sizes.__getitem__) % by == 0:
                found[name] = start + more
                return
