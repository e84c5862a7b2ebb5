"""Cases of operators that are described by their OpDef alone: shapes that their reference takes.

An OpDef says data types and attributes, not which shapes belong together. The reference does: a
set of shapes is a case if it computes. So the inputs after the first get, in this order, the first
one's shape, its last axis, its leading axes, one element, a square of its last axis.

Host code may take fewer shapes than the reference does, or only some orders of axes. What else it
may take comes in rounds: whole data blocks, other axes, then other shapes of the inputs together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, product

import numpy as np

from opkit.errors import OpkitError, UsageError
from opkit.schema import AttrSpec, AttrValue, OpSpec, TensorSpec
from opkit.testing.cases import (
    LIST_LENGTH,
    Case,
    Shape,
    Source,
    Together,
    case_variants,
    evaluate_expression,
    is_expression,
    make_case,
    names_of,
    plain_attr,
)
from opkit.testing.documented import calls_in
from opkit.testing.numbers import Input, is_complex, is_float
from opkit.testing.references import Found

__all__ = ["library_case", "library_cases", "other_library_cases"]

# No size is a multiple of 32 bytes; the last one has work for several cores.
_SHAPES: tuple[Shape, ...] = ((1,), (31,), (7, 33), (3, 5, 65), (2, 3, 17, 19), (97, 1031))
# For what halves an axis.
_EVEN_SHAPES: tuple[Shape, ...] = ((2,), (34,), (7, 66), (3, 5, 130), (2, 3, 17, 38), (97, 2062))
# For what takes square matrices.
_SQUARE_SHAPES: tuple[Shape, ...] = (
    *((1, 1), (5, 5), (3, 7, 7), (2, 3, 17, 17), (33, 33), (2, 65, 65)),
)
# For what takes whole data blocks only.
_ALIGNED_SHAPES: tuple[Shape, ...] = (
    *((64,), (16, 64), (4, 16, 64), (2, 4, 16, 64), (2, 2, 4, 16, 16), (256, 512)),
)
_AXES = ("axis", "axes", "dim", "dims", "concat_dim", "dimension")
_INDICES = ("index", "indices", "target")
# One element that may not be any: bounds in their order, and a range that is not empty.
_NUMBERS = {
    **dict.fromkeys(("clip_value_min", "min"), -0.5),
    **dict.fromkeys(("clip_value_max", "max"), 0.5),
    "start": 1.0,
    # Whole steps from the start: no document says how a fraction becomes a whole number.
    **dict.fromkeys(("end", "limit", "stop"), 97.0),
    **dict.fromkeys(("delta", "step"), 3.0),
    **dict.fromkeys(("num", "steps"), 17.0),
    **dict.fromkeys(("beta1", "beta1_power"), 0.875),
    **dict.fromkeys(("beta2", "beta2_power"), 0.984375),
    "epsilon": 0.015625,
    "lr": 0.25,
    "lr_power": -0.5,
    **dict.fromkeys(("l1", "l2"), 0.125),
    "roundMode": 1.0,
}
# Sums of squares.
_NEVER_NEGATIVE = ("accum", "v", "batch_variance", "running_var", "save_rstd")
_SQUARES = (0.125, 2.0)
# Lists of whole numbers that depend on a shape; others are read as ones.
_LISTS: dict[str, Callable[[Shape, int], tuple[int, ...]]] = {
    **dict.fromkeys(("perm", "permutation"), lambda shape, manner: _order(len(shape), manner)),
    **dict.fromkeys(("multiples", "repeats"), lambda shape, manner: (2,) * len(shape)),
    "group_index": lambda shape, manner: shape[:1],
    "paddings": lambda shape, manner: (0, 0) * (len(shape) - 2) + (1, 1) * min(len(shape), 2),
    "begin": lambda shape, manner: tuple(min(1, size - 1) for size in shape),
    "size": lambda shape, manner: tuple((size + 1) // 2 for size in shape),
    "normalized_shape": lambda shape, manner: shape[-1:],
    **dict.fromkeys(_AXES, lambda shape, manner: (_axis(shape, manner),)),
}
# Of other cases, in the order in which they are tried: shapes, which axes are chosen, and how many
# sets of shapes that the reference takes are passed over.
_ROUNDS = (
    (_ALIGNED_SHAPES, 0, 0),
    (_SHAPES, 1, 0),
    (_ALIGNED_SHAPES, 1, 0),
    (_SHAPES, 2, 0),
    (_ALIGNED_SHAPES, 2, 0),
)
_OTHERS_TOGETHER = tuple(
    (shapes, 0, passed) for shapes in (_SHAPES, _ALIGNED_SHAPES) for passed in (1, 2, 3)
)
# Of rows or channels, and of what is normalised.
_STATISTICS = frozenset({"mean", "rstd", "invstd", "variance"})
_SCALES = frozenset({"gamma", "beta", "weight", "bias"})
_OF_CHANNELS = frozenset({"running_mean", "running_var", "save_mean", "save_rstd", "weight"})
# Attributes that say the data type of the result, by its number.
_RESULT_TYPES = ("Tout", "dst_type", "dtype", "out_dtype", "output_dtype", "y_dtype")
# What quantises is a number of the result's size, of what is divided by it, or multiplied.
_SCALE = re.compile(r"scales?_?\d?$", re.IGNORECASE)
_OFFSETS = frozenset({"offset", "zero_point", "zero_points"})
_QUANTISED_BY = ((8.0, 32.0), (0.03125, 0.125))
# What a required text says.
_TEXTS = {"reduction": "mean", "approximate": "none"}
# What has an output written that it leaves alone by default.
_WRITES = ("additional_output", "has_bias")
# Of whole numbers that divide.
_DIVISORS = (1.0, 9.0)
# Whole numbers have no negative powers, and small ones stay within their type.
_EXPONENT = re.compile(r"\btorch\.(?:_foreach_)?pow\(\w+(?:\.item\(\))?, (?:exponent=)?(\w+)\b")
_EXPONENTS = (0.0, 3.0)
# More inputs than this after the first are tried with one shape for all, or with few shapes.
_MOST_MIXED = 2
_MOST_OF_FEW = 5
_MOST_TRIES = 1000


def library_cases(
    spec: OpSpec,
    expression: str,
    *,
    found: Found | None = None,
    ranks: tuple[int, int] | None = None,
    values: Mapping[str, Source] | None = None,
    seed: int = 0,
) -> tuple[Case, ...]:
    """Return six shapes with tails of each combination of data types, fewer where some do not fit.

    Args:
        expression: the reference; with FILE.py:FUNCTION, and without one, every input has one
            shape.
        found: what `find_by_name` gave, where the expression is from there.
        ranks: the fewest and the most axes that shapes have; any where None.
        values: of inputs that may not hold any, where the reference does not say more.
        seed: a whole number from 0; another one gives other values in the same cases.
    Raises:
        UsageError: the reference takes none of the shapes.
    """
    refused: OpkitError | None = None
    variants = [
        variant
        for variant in case_variants(spec)
        if not any(_is_private(tensor.formats[variant]) for tensor in spec.inputs)
    ]
    own = _cases_together(spec, variants, expression, found, seed) if found else ()
    if own:
        return own
    for shapes in (_SHAPES, _EVEN_SHAPES, _SQUARE_SHAPES):
        cases: list[Case] = []
        for variant in variants:
            for shape in _of_ranks(shapes, ranks):
                try:
                    cases.append(_case(spec, variant, shape, expression, found, seed, values))
                except OpkitError as error:
                    refused = refused or error
        if cases:
            return tuple({case.name: case for case in cases}.values())
    if refused is None:
        raise UsageError(
            f"{spec.op} has no combination of data types in the format ND and without int4",
            help="opkit makes no cases of int4: call it from Python, docs/programs.md",
        )
    raise UsageError(
        f"no shape that opkit generates fits {spec.op}: {refused}",
        help="write cases with their shapes into tests/cases.yaml: docs/cases.md",
    )


def library_case(
    spec: OpSpec,
    expression: str,
    shape: Shape,
    *,
    variant: int = 0,
    found: Found | None = None,
    values: Mapping[str, Source] | None = None,
    seed: int = 0,
) -> Case:
    """Return the case of one shape, whose other inputs have the shapes that the reference takes.

    Args: as `library_cases`.
    Raises:
        UsageError: the reference takes no such shape.
    """
    try:
        return _case(spec, variant, shape, expression, found, seed, values)
    except OpkitError as error:
        text = "x".join(map(str, shape))
        raise UsageError(
            f"the reference of {spec.op} takes no shape {text}: {error}",
            help="write a case with the shapes of all inputs into tests/cases.yaml: docs/cases.md",
        ) from error


def _cases_together(
    spec: OpSpec, variants: Sequence[int], expression: str, found: Found, seed: int
) -> tuple[Case, ...]:
    """Return the cases whose inputs belong together, those that the reference takes in their type.

    Another operator of the name may have other inputs: then there are none.
    """
    cases: dict[str, Case] = {}
    for variant, (number, together) in product(variants, enumerate(found.together, 1)):
        try:
            case = _together(spec, variant, together, expression, seed)
        except OpkitError:
            continue
        label = f"{case.name}-{number}" if case.name in cases else case.label
        cases[label or case.name] = replace(case, label=label)
    return tuple(cases.values())


def _together(spec: OpSpec, variant: int, together: Together, expression: str, seed: int) -> Case:
    known = {attr.name for attr in spec.attrs}
    if len(together.shapes) > len(spec.inputs) or not together.attrs.keys() <= known:
        raise UsageError(f"{spec.op} has other inputs and attributes")
    result = spec.outputs[0].dtypes[variant].name
    if together.results and result not in together.results:
        raise UsageError(f"{spec.op} gives {result} of other inputs")
    shapes = (*together.shapes, *[None] * (len(spec.inputs) - len(together.shapes)))
    main = next(shape for shape in shapes if shape is not None)
    attrs = {a.name: _attribute(a, spec, variant, main, 0) for a in spec.attrs}
    case = replace(
        make_case(spec, main, variant=variant, seed=seed),
        attrs=tuple({**attrs, **together.attrs}.items()),
        golden=expression,
        shapes=shapes,
        sources=tuple(together.values.get(tensor.name) for tensor in spec.inputs),
    )
    inputs = [
        _example(case, spec, index, shape, case.sources[index])
        for index, shape in enumerate(shapes)
    ]
    evaluate_expression(expression, spec, inputs, attrs=dict(case.attrs))
    return case


def other_library_cases(
    spec: OpSpec,
    expression: str,
    variant: int,
    *,
    found: Found | None = None,
    ranks: tuple[int, int] | None = None,
    values: Mapping[str, Source] | None = None,
    taken: tuple[int, int] | None = None,
    seed: int = 0,
) -> Iterator[tuple[Case, ...]]:
    """Yield rounds of further cases of one combination of data types, the likeliest first.

    Args: as `library_cases`, and
        taken: the fewest and the most axes of cases that the host code took; None where it took
            none. Its inputs then have the right shapes together.
    """
    rounds = (*_ROUNDS, *_OTHERS_TOGETHER) if taken is None else ((_SHAPES, 0, 0), *_ROUNDS)
    ranks = ranks if taken is None else taken
    for shapes, manner, passed in rounds:
        cases = []
        for shape in _of_ranks(shapes, ranks):
            try:
                case = _case(spec, variant, shape, expression, found, seed, values, manner, passed)
                usual = _case(spec, variant, shape, expression, found, seed, values)
            except OpkitError:
                continue
            if manner == passed == 0:
                cases.append(case)
            elif case != usual:
                which = f"axes{manner}" if manner else f"shapes{passed}"
                cases.append(replace(case, label=f"{case.name}-{which}"))
        yield tuple(cases)


def _of_ranks(shapes: Sequence[Shape], ranks: tuple[int, int] | None) -> list[Shape]:
    """Return shapes with as many axes as they may have: leading ones are added, or made one."""
    if ranks is None:
        return list(shapes)
    lowest, highest = ranks
    found: dict[Shape, None] = {}
    for shape in shapes:
        one_axis = max(len(shape) - highest + 1, 1)
        few = (math.prod(shape[:one_axis]), *shape[one_axis:]) if highest else ()
        found[(1,) * (lowest - len(few)) + few] = None
    return list(found)


def _order(rank: int, manner: int) -> tuple[int, ...]:
    """Return all axes in reverse, or with the last two or the two before them exchanged."""
    axes = list(range(rank))
    if manner == 0:
        return tuple(reversed(axes))
    last = rank - manner + 1
    if last >= 2:
        axes[last - 2 : last] = reversed(axes[last - 2 : last])
    return tuple(axes)


def _axis(shape: Shape, manner: int) -> int:
    """Return the last axis, the first, or the one before the last."""
    return (len(shape) - 1, 0, max(len(shape) - 2, 0))[manner]


def _is_private(layout: str) -> bool:
    """Whether a format is one of the chip's own, whose shapes are others than the tensor's."""
    return "C0" in layout or "FRACTAL" in layout


def _case(
    spec: OpSpec,
    variant: int,
    shape: Shape,
    expression: str,
    found: Found | None,
    seed: int,
    values: Mapping[str, Source] | None = None,
    manner: int = 0,
    passed: int = 0,
) -> Case:
    plain = make_case(spec, shape, variant=variant, seed=seed)
    case = replace(
        plain,
        attrs=tuple((a.name, _attribute(a, spec, variant, shape, manner)) for a in spec.attrs),
        golden=expression,
    )
    if not expression:
        known = tuple((values or {}).get(tensor.name) for tensor in spec.inputs)
        return replace(case, sources=known) if any(known) else case
    if not is_expression(expression):
        return case
    read = dict(found.read) if found is not None else {}
    exponents, divisors = _exponents(expression), _divisors(expression, spec)
    sources = tuple(
        _source(t, variant, shape, read.get(t.name), exponents, manner)
        or (values or {}).get(t.name)
        or _scale_of(spec, t, variant, divisors)
        for t in spec.inputs
    )
    lengths = {
        t.name: len(source.values)
        for t, source in zip(spec.inputs, sources, strict=True)
        if source is not None and source.values is not None
    }
    error: OpkitError | None = None
    used = found.used if found is not None else names_of(expression)
    for shapes in _choices(spec, shape, read, lengths, used):
        inputs = [
            _example(case, spec, index, one, sources[index]) for index, one in enumerate(shapes)
        ]
        try:
            evaluate_expression(expression, spec, inputs, attrs=dict(case.attrs))
        except OpkitError as err:
            error = error or err
            continue
        if passed:
            passed -= 1
            continue
        found_sources = tuple(
            _without_refused(case, spec, expression, inputs, index, source)
            for index, source in enumerate(sources)
        )
        given = any(source is not None for source in found_sources)
        return replace(case, shapes=shapes, sources=found_sources if given else ())
    raise error or UsageError(f"{spec.op}: its reference takes no more shapes")


def _choices(
    spec: OpSpec,
    shape: Shape,
    read: Mapping[str, str],
    lengths: Mapping[str, int],
    used: Collection[str],
) -> Iterator[tuple[Shape | None, ...]]:
    """Yield what the inputs' shapes may be together, the likeliest first."""
    fixed: dict[str, Shape | None] = {}
    for tensor in spec.inputs:
        if tensor.name in read:
            length = LIST_LENGTH if read[tensor.name] == "numbers" else lengths.get(tensor.name, 1)
            fixed[tensor.name] = (length,)
        elif tensor.name not in used and tensor.param_type == "optional":
            fixed[tensor.name] = None
        elif tensor.is_scalar:
            fixed[tensor.name] = (1,)
        elif tensor.name not in used:
            fixed[tensor.name] = shape
    free = [tensor.name for tensor in spec.inputs if tensor.name not in fixed][1:]
    last = shape[-1]
    options = dict.fromkeys(
        (shape, shape[-1:], shape[:-1] or (1,), (1,), (*shape[:-2], last, last), (last, last))
    )
    # Twice as long, a row for each matrix, a number a channel, a row, or the first of the axes.
    by_matrix = (*shape[:-2], last)
    rarer = dict.fromkeys(
        (
            *(*options, (*shape[:-1], 2 * last), (*shape[:-2], 1, last), shape[1:2] or (1,)),
            *((*shape[:-1], 1), (shape[0], 1), by_matrix),
        )
    )
    # What is normalised, and numbers of rows and channels.
    few = dict.fromkeys(
        (
            *(shape, shape[-1:], shape[:-1] or (1,), (shape[0], 1), (*shape[:-1], 1)),
            shape[1:2] or (1,),
            # A row of gates.
            (*shape[:-1], 4 * last),
        )
    )
    count = len(free)
    tried: list[Iterable[tuple[Shape, ...]]] = [[(shape,) * count]]
    if _MOST_MIXED < count <= _MOST_OF_FEW:
        # A number a row for each of many inputs would fit by broadcasting.
        each = [_likely(name, few, shape) for name in free]
        tried += [islice(product(*each), _MOST_TRIES)]
    if count > _MOST_OF_FEW:
        scales = [name in _SCALES or _SCALE.search(name) is not None for name in free]
        tried += [[tuple(shape[-1:] if one else shape for one in scales)]]
        channels = shape[1:2] or (1,)
        tried += [[tuple(channels if name in _OF_CHANNELS else shape for name in free)]]
    for found in (options, rarer) if count else ():
        tried += [[(option,) * count for option in found]]
        tried += [product(found, repeat=count)] if 1 < count <= _MOST_MIXED else []
    for shapes in dict.fromkeys(chain.from_iterable(tried)):
        given = {**fixed, **dict(zip(free, shapes, strict=True))}
        yield tuple(given.get(tensor.name, shape) for tensor in spec.inputs)
    # A gradient of one number, which a loss is.
    first = next((tensor.name for tensor in spec.inputs if tensor.name not in fixed), None)
    if free and first is not None:
        given = {**fixed, first: (1,)}
        yield tuple(given.get(tensor.name, shape) for tensor in spec.inputs)


def _likely(name: str, options: Iterable[Shape], shape: Shape) -> list[Shape]:
    """Return what may be the shape of one of many inputs, whose name may leave out some."""
    if name in _STATISTICS:
        return [option for option in options if option not in (shape, shape[-1:])] or [shape]
    if name in _SCALES:
        return list(dict.fromkeys((shape[-1:], shape[1:2] or (1,), shape)))
    if _SCALE.search(name) or name in _OFFSETS:
        return list(dict.fromkeys((shape[-1:], (1,))))
    return list(options)


def _source(
    tensor: TensorSpec,
    variant: int,
    shape: Shape,
    read: str | None,
    exponents: Collection[str],
    manner: int,
) -> Source | None:
    """Return where an input's values come from that may not be any."""
    if read == "ints" or (tensor.name in _AXES and read == "int"):
        rule = _LISTS.get(tensor.name)
        return Source(values=(1.0,) if rule is None else tuple(map(float, rule(shape, manner))))
    if tensor.name in _NUMBERS and read is not None:
        number = _NUMBERS[tensor.name]
        if not is_float(tensor.dtypes[variant]):
            # Bounds stay apart, and within their type.
            number = math.copysign(math.ceil(abs(number)), number)
            number = max(number, 0.0) if tensor.dtypes[variant].name.startswith("u") else number
        return Source(values=(number,))
    if tensor.name in _NEVER_NEGATIVE and is_float(tensor.dtypes[variant]):
        return Source("uniform", *_SQUARES)
    if tensor.name in exponents and not is_float(tensor.dtypes[variant]):
        return Source("uniform", *_EXPONENTS)
    if tensor.name in _INDICES and not is_float(tensor.dtypes[variant]):
        return Source("uniform", 0.0, float(min(shape) - 1))
    return None


def _exponents(expression: str) -> frozenset[str]:
    """Return the inputs that a reference takes as exponents."""
    written = _EXPONENT.findall(expression)
    called = [
        given[name]
        for function, given in calls_in(expression)
        for name in function.exponents & given.keys()
    ]
    return frozenset([*written, *called])


def _divisors(expression: str, spec: OpSpec) -> frozenset[str]:
    """Return the inputs that a reference divides by."""
    written = [tensor.name for tensor in spec.inputs if f"/ {tensor.name}" in expression]
    called = [
        given[name]
        for function, given in calls_in(expression)
        for name in function.divisors & given.keys()
    ]
    return frozenset([*written, *called])


def _scale_of(
    spec: OpSpec, tensor: TensorSpec, variant: int, divisors: Collection[str]
) -> Source | None:
    """Return the values of a scale by which whole numbers fill their type, and few are beyond."""
    if is_float(spec.outputs[0].dtypes[variant]) or not is_float(tensor.dtypes[variant]):
        return None
    if not _SCALE.search(tensor.name):
        return None
    return Source("uniform", *_QUANTISED_BY[tensor.name in divisors])


def _without_refused(
    case: Case,
    spec: OpSpec,
    expression: str,
    inputs: list[Input],
    index: int,
    source: Source | None,
) -> Source | None:
    """Return values above 0 where the reference takes no zero, which is a divisor, or no negative
    fraction, which is a variance."""
    value = inputs[index]
    if source is not None or not isinstance(value, np.ndarray) or value.dtype == np.bool_:
        return source
    is_whole = value.dtype == np.int64
    others = [*inputs[:index], np.full_like(value, 0 if is_whole else -1), *inputs[index + 1 :]]
    try:
        evaluate_expression(expression, spec, others, attrs=dict(case.attrs))
    except OpkitError:
        return Source("uniform", *(_DIVISORS if is_whole else _SQUARES))
    return None


def _attribute(attr: AttrSpec, spec: OpSpec, variant: int, shape: Shape, manner: int) -> AttrValue:
    """Return its default; an axis for a required axis, else a plain value of its type."""
    result = spec.outputs[0].dtypes[variant]
    if attr.name in _RESULT_TYPES and attr.type == "int":
        return result.ge_value
    if attr.name in _RESULT_TYPES and attr.type == "string" and attr.default is None:
        return f"torch.q{result.name}" if "quant" in spec.name else f"torch.{result.name}"
    if (attr.default is None or manner) and attr.name in _AXES and attr.type in ("int", "list_int"):
        axis = _axis(shape, manner)
        return axis if attr.type == "int" else (axis,)
    if attr.type == "bool" and attr.name in _WRITES:
        return True
    if attr.default is None and attr.type == "string" and attr.name in _TEXTS:
        return _TEXTS[attr.name]
    return plain_attr(attr)


def _example(
    case: Case, spec: OpSpec, index: int, shape: Shape | None, source: Source | None
) -> Input:
    """Return an input of that shape to try the reference on."""
    if shape is None:
        return None
    dtype = case.dtypes[index]
    kind = np.float64 if is_float(dtype) else np.bool_ if dtype.name == "bool" else np.int64
    if is_complex(dtype):
        kind = np.complex128
    if source is not None and source.values is not None:
        array = np.array(source.values * (math.prod(shape) // len(source.values)), kind)
        array = array.reshape(shape)
    else:
        least = 1.0 if source is None else source.low or 0.0
        array = np.full(shape, least if is_float(dtype) else math.ceil(least), kind)
    if spec.inputs[index].param_type == "dynamic":
        return [array] * LIST_LENGTH
    return array
