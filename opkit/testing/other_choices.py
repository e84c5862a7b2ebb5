"""Cases with another value of each attribute, of all at once, with the other sign of a factor, and
without each optional input.

With its defaults alone an operator whose kernel ignores an attribute is right. Which other values
have a meaning the golden says: it takes them, and its results differ and are as large and as
finite as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from types import CodeType

import numpy as np

from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases import Case, make_inputs
from opkit.testing.numbers import Array, tensors_of
from opkit.testing.outcome import Outcome, is_in_range, outcome_of
from opkit.testing.references import Reference

__all__ = ["cases_of_other_choices"]

_CHANGED = 2.0**-5
"""Relative change of an element: more than any standard forgives."""
_ROUNDING = 2.0**-6
"""Relative distance of results that differ by their rounding alone: two of bfloat16's steps."""
_FEWEST_CHANGED = 0.125
"""Fewest changed elements, as a share of an output's."""
_BEYOND_FLOAT32 = (1 << 24) + 1
"""The smallest whole number that float32 does not hold."""
_LARGEST_HALF = 65504.0
_LENGTHS = (3, 1)
"""How many tensors lists have that usually have two."""
_LONGEST_WORD = 32
_MOST_WORDS = 4


def cases_of_other_choices(
    case: Case,
    spec: OpSpec,
    reference: Reference,
    with_thresholds: Callable[[Case, Outcome], Case | None],
) -> list[Case]:
    """Return a case with another value of each attribute, one of all flags and one of all others,
    where the golden's results show it, lists of other lengths, and a case without each optional
    input that the golden can do without.

    The host code may refuse them: its values may have bounds that the golden does not know.

    Args:
        case: ordinary, and small.
        with_thresholds: returns a case with values that its golden compares with others.
    """
    usual = outcome_of(reference, case)
    if usual is None:
        return []

    def shown(others: Iterable[Case]) -> Iterator[Case]:
        for other in others:
            one = _shown(case, other, spec, reference, with_thresholds)
            if one is not None:
                yield one

    found = list(shown(_with_flags_flipped(case)))
    together = dict(case.attrs)
    # A flag alone has its other value among the default cases.
    others = [attr for attr in spec.attrs if attr.type != "bool"]
    for attr in others:
        values = _other_values(dict(case.attrs)[attr.name], attr.type, reference)
        # Each word is a branch of its own.
        most = _MOST_WORDS if attr.type == "string" else 1
        shows = list(islice(shown(_with_attribute(case, attr.name, v) for v in values), most))
        together |= {name: v for one in shows[:1] for name, v in one.attrs if name == attr.name}
        found += [*shows, *shown(_with_the_other_sign(case, attr.name, reference))]
        found += islice(shown(_above_zero(case, attr.name)), 1)
    if sum(dict(case.attrs)[attr.name] != together[attr.name] for attr in others) > 1:
        label = f"{case.name}-all_others"
        found += shown([replace(case, attrs=tuple(together.items()), label=label)])
    for length in _LENGTHS if case.lists else ():
        longer = replace(case, list_length=length, label=f"{case.name}-{length}_tensors")
        if outcome_of(reference, longer) is not None:
            found.append(longer)
    for number, tensor in enumerate(spec.inputs):
        if tensor.param_type == "optional" and case.shapes[number] is not None:
            shapes = tuple(None if n == number else s for n, s in enumerate(case.shapes))
            other = replace(case, shapes=shapes, label=f"{case.name}-no_{tensor.name}")
            ended = outcome_of(reference, other)
            if ended is not None and _is_alike(usual, ended):
                found.append(other)
    return [replace(one, may_be_refused=True) for one in found]


def _with_flags_flipped(case: Case) -> tuple[Case, ...]:
    """Return the case with each flag's other value; nothing where there are not several flags."""
    flags = {name: not value for name, value in case.attrs if isinstance(value, bool)}
    if len(flags) < 2:
        return ()
    attrs = tuple((name, flags.get(name, value)) for name, value in case.attrs)
    told = "-".join(f"{name}={str(value).lower()}" for name, value in flags.items())
    return (replace(case, attrs=attrs, label=f"{case.name}-{told}"),)


def _with_the_other_sign(case: Case, name: str, reference: Reference) -> Iterator[Case]:
    """Yield the case with the attribute's negative and with 0, where results are straight lines in
    it, or where a whole number says how far values move.

    A bound, a length or what stands under a root may be meant to be positive, though the golden
    takes any number; a factor, a summand and a way to go have both signs, and 0 is one of them, not
    what nobody has given. The numbers of a list change together.
    """
    value = dict(case.attrs)[name]
    lowest, none = _scaled(value, -1), _scaled(value, 0)
    if lowest is None or none is None or lowest == value:
        return
    other = _with_attribute(case, name, lowest)
    # Of the same name, on which the inputs depend.
    three = (
        outcome_of(reference, replace(_with_attribute(case, name, one), label=other.label))
        for one in (value, none, lowest)
    )
    ends = [ended for ended in three if ended is not None]
    if len(ends) < 3:
        return
    is_line = all(map(_is_middle, *(ended.outputs for ended in ends)))
    if is_line or (isinstance(value, int) and _only_move(other, reference, ends)):
        yield other
        yield _with_attribute(case, name, none)
    if is_line and isinstance(value, int) and ends[0].outputs[0].dtype.kind in "iu":
        yield _with_attribute(case, name, _BEYOND_FLOAT32)


def _above_zero(case: Case, name: str) -> Iterator[Case]:
    """Yield the case with an attribute above 0 where it is a fraction below: a lower bound that a
    kernel takes for a negative number."""
    value = dict(case.attrs)[name]
    if isinstance(value, float) and value < 0:
        yield from (_with_attribute(case, name, above) for above in (0.25, -value))


def _scaled(value: AttrValue, factor: int) -> AttrValue | None:
    """Return a number, or the numbers of a list, times a factor; None of anything else."""
    if isinstance(value, tuple):
        parts = tuple(_scaled(one, factor) for one in value)
        return None if None in parts else parts  # type: ignore[return-value]
    return None if isinstance(value, bool | str) else factor * value


def _only_move(case: Case, reference: Reference, ends: Sequence[Outcome]) -> bool:
    """Whether each result that changes is as large as the first input, of the inputs' elements,
    none more often than there, and zeros."""
    given = tensors_of(reference.evaluation(make_inputs(case)).inputs)
    values, counts = np.unique(np.concatenate([a.reshape(-1) for a in given]), return_counts=True)

    def has_moved(output: Array) -> bool:
        found, often = np.unique(output[output != 0], return_counts=True)
        if output.shape != given[0].shape or not np.isin(found, values).all():
            return False
        return bool((often <= counts[np.searchsorted(values, found)]).all())

    changing = [
        outputs
        for outputs in zip(*(ended.outputs for ended in ends), strict=True)
        if not all(np.array_equal(outputs[0], output) for output in outputs)
    ]
    return bool(changing) and all(map(has_moved, (one for outputs in changing for one in outputs)))


def _with_attribute(case: Case, name: str, value: AttrValue) -> Case:
    attrs = tuple((n, value if n == name else v) for n, v in case.attrs)
    told = str(value).lower().replace(" ", "")
    return replace(case, attrs=attrs, label=f"{case.name}-{name}={told}")


def _shown(
    case: Case,
    other: Case,
    spec: OpSpec,
    reference: Reference,
    with_thresholds: Callable[[Case, Outcome], Case | None],
) -> Case | None:
    """Return the case with the other value that has other results than with the usual one."""
    ended = outcome_of(reference, other)
    if ended is None:
        return None
    # A bound is not reached by ordinary values.
    for shown in (other, with_thresholds(other, ended)):
        if shown is None:
            continue
        # Of the same name, on which the inputs depend.
        usual = outcome_of(reference, replace(shown, attrs=case.attrs))
        ended = outcome_of(reference, shown)
        if not usual or not ended or not is_in_range(ended, shown, spec):
            continue
        if _is_alike(usual, ended) and _differs(usual, ended):
            return shown
    return None


def _other_values(value: AttrValue, kind: str, reference: Reference) -> Iterator[AttrValue]:
    """Yield values that an attribute may have too, the likeliest first."""
    if isinstance(value, str):
        yield from (word for word in _words(reference) if word != value)
    elif isinstance(value, tuple):
        yield from _other_lists(value, kind)
    else:
        yield from (one for one in _other_numbers(value, kind) if one != value)


def _other_numbers(value: float, kind: str) -> tuple[float, ...]:
    if kind == "int":
        number = int(value)
        return number + 1, 2 * number, number - 1 if number else 2
    return _fraction(1.5 * value), 0.5 * value, 0.25, 2.0


def _fraction(value: float) -> float:
    """Return the number, or one beside it where it is whole or 16 bits hold it: a kernel may take
    whole ones alone, or keep them as halves."""
    near = value + 0.25 if value == round(value) else value
    step = float(np.spacing(np.float16(near)))
    # Half of a step away from both neighbours: as far off as a half can be.
    is_half = abs(near) < _LARGEST_HALF and near == float(np.float16(near))
    return round(near + 0.48 * step, 7) if is_half else near


def _other_lists(values: Sequence[object], kind: str) -> Iterator[AttrValue]:
    if kind == "list_float":
        for factor in (1.5, 0.5):
            yield tuple(_fraction(factor * float(one)) for one in values)  # type: ignore[arg-type]
    elif kind == "list_int":
        yield tuple(int(one) + 1 for one in values)  # type: ignore[call-overload]
        yield tuple(int(one) for one in reversed(values))  # type: ignore[call-overload]
    elif kind == "list_bool":
        yield tuple(not one for one in values)


def _words(reference: Reference) -> list[str]:
    """Return the words that the golden's text compares with."""
    golden, case = reference.golden, reference.case
    function = getattr(golden.module, case.kernel, None) if golden and not case.golden else None
    code = getattr(function, "__code__", None)
    documentation = getattr(function, "__doc__", None)
    found = _strings(code) if isinstance(code, CodeType) else []
    return [w for w in dict.fromkeys(found) if w != documentation and len(w) <= _LONGEST_WORD]


def _strings(code: CodeType) -> list[str]:
    found: list[str] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _strings(constant)
        else:
            some = constant if isinstance(constant, (tuple, frozenset)) else (constant,)
            found += sorted(one for one in some if isinstance(one, str))
    return found


def _is_middle(one: Array, middle: Array, two: Array) -> bool:
    """Whether the second result lies half way from the first to the third, up to rounding."""
    if not one.shape == middle.shape == two.shape or one.dtype.kind not in "iufc":
        return False
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    first, half_way, last = (part.astype(wide) for part in (one, middle, two))
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(first), np.abs(last))
        distance = np.abs(first + last - 2 * half_way)
        return bool((distance <= _ROUNDING * largest).all())


def _is_alike(usual: Outcome, other: Outcome) -> bool:
    """Whether results have the same shapes, and are finite where they were."""
    return all(
        one.shape == two.shape
        and (one.dtype.kind not in "fc" or bool(np.isfinite(two[np.isfinite(one)]).all()))
        for one, two in zip(usual.outputs, other.outputs, strict=True)
    )


def _differs(usual: Outcome, other: Outcome) -> bool:
    return any(map(_has_changed, usual.outputs, other.outputs))


def _has_changed(one: Array, two: Array) -> bool:
    if not one.size or one.dtype.kind not in "biufc":
        return False
    with np.errstate(all="ignore"):
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        distance = np.abs(two.astype(wide) - one.astype(wide))
        largest = np.maximum(np.abs(one), np.abs(two))
        changed = distance > _CHANGED * largest
    return float(np.mean(changed)) >= _FEWEST_CHANGED
