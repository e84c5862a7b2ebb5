"""Cases whose values tell a wrong kernel from a right one, where the operator takes such values.

Ordinary values are small, finite and never halfway between two numbers: a kernel that computes
int32 through float, that clamps NaN away or rounds halves the wrong way is right for all of them.
They are never equal to each other or to a number either, nor far beyond it, and attributes have
their defaults: so is a kernel that takes < for <=, forgets a bound or an attribute. Nor do they lie
far from 0 and close to each other, where the mean of squares less the square of the mean is noise.
Which values an operator takes its golden says: whole numbers grow as far as it computes with them
and neither its results nor what is computed on the way leave their types.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opkit.dtypes import DType
from opkit.errors import OpkitError
from opkit.schema import OpSpec
from opkit.testing.cases import (
    HALVES,
    Case,
    Golden,
    Shape,
    ShapeRule,
    Source,
    case_variants,
    make_case,
    make_inputs,
    reads_axes,
    works_by_row,
)
from opkit.testing.numbers import (
    Array,
    format_numbers,
    is_complex,
    is_float,
    narrow,
    tensors_of,
    widen,
)
from opkit.testing.other_choices import cases_of_other_choices
from opkit.testing.outcome import Outcome, is_in_range, outcome_of, types_of_outputs
from opkit.testing.references import Reference, find_reference

__all__ = ["probing_cases"]

_SECONDS = 5.0
"""What each call of the golden may take; one that takes longer is asked for no such cases."""
_EXACT_IN_FLOAT32 = float(1 << 24)
_UNSEEN_BITS = 26
"""Bits of integers where the golden's intermediate values cannot be followed."""
_FEWEST_BITS, _STEP = 5, 3
"""Ordinary whole numbers have four."""
_RARE_ROWS: tuple[Shape, ...] = ((2, 1, 3, 2, 5), (5, 0), (65539, 1), (2, 20011))
"""More axes than kernels of four know, rows of nothing, more rows than 16 bits count, and rows of
more bytes than that."""
_ORDINARY = Source("normal")
_BITS = "binary"
"""The standard that compares bits."""
_OFFSET, _SPREAD = 64.0, 0.125
"""How far from 0 values lie, and from that: in float32 their variance, as the difference of two
means, is off by percents, as the mean of squared differences by some 1e-5. Exponentials of them
stay within float32."""
_SHIFT_INVARIANT = 2.0**-10
"""Largest difference of results that an offset leaves as they are, of the largest result."""
_ONE = Source(values=(1.0,))


def probing_cases(
    spec: OpSpec, golden: Golden | None, *, seed: int = 0, shape_rule: ShapeRule | None = None
) -> tuple[Case, ...]:
    """Return cases with large whole numbers, with NaN and infinities, with exact halves, with
    values far from 0, with what the golden compares values with, and with another value of each
    attribute.

    None where nothing says what is right, where the golden refuses such values, and of NaN where
    results are whole numbers, which have none.

    Args:
        golden: the project's references.
        seed, shape_rule: as `default_cases`.
    """
    cases: list[Case] = []
    for variant in case_variants(spec):
        shape = _shape(spec, shape_rule)
        base = make_case(spec, shape, variant=variant, seed=seed, shape_rule=shape_rule)
        reference = find_reference(base, spec, golden, wants_second=False, seconds=_SECONDS)
        if reference is None:
            return ()
        usual = outcome_of(reference, base)
        if usual is None:
            continue
        by_row = works_by_row(spec, shape_rule=shape_rule) or reads_axes(spec)
        small = make_case(
            spec, _small(spec, shape_rule), variant=variant, seed=seed, shape_rule=shape_rule
        )

        def with_thresholds(
            case: Case, usual: Outcome, reference: Reference = reference
        ) -> Case | None:
            return _with_thresholds(case, spec, reference, usual)

        found = (
            _with_nonfinite(base, spec, reference, by_row=by_row),
            _with_ties(base, spec, reference, usual),
            _with_ties_by_one(base, spec, reference, usual),
            _with_offset(base, spec, reference),
            _with_large_whole(base, spec, reference, usual),
            with_thresholds(small, usual),
        )
        cases += [case for case in found if case is not None]
        cases += cases_of_other_choices(small, spec, reference, with_thresholds)
        if by_row and not reads_axes(spec) and not spec.is_program:
            cases += _of_rare_rows(base, spec, reference, shape_rule)
    return tuple(cases)


def _shape(spec: OpSpec, shape_rule: ShapeRule | None) -> Shape:
    if shape_rule is None and reads_axes(spec):
        return (1, 2, 33, 33)
    return (26, 67) if works_by_row(spec, shape_rule=shape_rule) else (33, 257)


def _of_rare_rows(
    case: Case, spec: OpSpec, reference: Reference, shape_rule: ShapeRule | None
) -> list[Case]:
    """Return cases of rows that a kernel may mean to refuse, where the golden has finite results of
    them. What a rule makes of long ones may be any number of elements."""
    found = []
    for shape in _RARE_ROWS if shape_rule is None else _RARE_ROWS[:1]:
        with contextlib.suppress(OpkitError):
            other = make_case(
                spec, shape, variant=case.variant, seed=case.seed, shape_rule=shape_rule
            )
            ended = outcome_of(reference, other)
            if ended is not None and all(map(_is_finite, ended.outputs)):
                found.append(replace(other, may_be_refused=True))
    return found


def _is_finite(output: Array) -> bool:
    return output.dtype.kind not in "fc" or bool(np.isfinite(output).all())


def _small(spec: OpSpec, shape_rule: ShapeRule | None) -> Shape:
    if shape_rule is None and reads_axes(spec):
        return (1, 2, 17, 17)
    # In rows of so few, of which the number is even, half of them fulfil a condition now and then.
    return (33, 10) if works_by_row(spec, shape_rule=shape_rule) else (333,)


def _is_whole(dtype: DType) -> bool:
    return not (is_float(dtype) or is_complex(dtype) or dtype.name == "bool")


def _floats(case: Case, spec: OpSpec) -> list[int]:
    return [number for number in range(len(spec.inputs)) if is_float(case.dtypes[number])]


def _sources(case: Case) -> list[Source | None]:
    return list(case.sources or (None,) * len(case.shapes))


def _with_ordinary(case: Case, distribution: str, sources: Sequence[Source | None]) -> Case:
    """Return a case of a distribution that whole numbers without a source do not have."""
    filled = tuple(
        _ORDINARY if source is None and _is_whole(dtype) else source
        for source, dtype in zip(sources, case.dtypes, strict=False)
    )
    return replace(case, distribution=distribution, sources=filled if any(filled) else ())


def _with_nonfinite(case: Case, spec: OpSpec, reference: Reference, *, by_row: bool) -> Case | None:
    if not _floats(case, spec) or any(map(_is_whole, types_of_outputs(case, spec))):
        return None
    distribution = "nonfinite_rows" if by_row else "nonfinite"
    found = _with_ordinary(case, distribution, _sources(case))
    return found if outcome_of(reference, found) is not None else None


def _with_ties(case: Case, spec: OpSpec, reference: Reference, usual: Outcome) -> Case | None:
    """Return a case of halves in the first input of floats, and of ones in the others: what is
    multiplied, divided or added keeps them.

    An operator that does nothing but narrow its input is as right as the narrowed golden, bit for
    bit: there the standards' steps of the type would forgive any way of rounding.
    """
    floats = [number for number in _floats(case, spec) if _sources(case)[number] is None]
    whole = any(map(_is_whole, types_of_outputs(case, spec)))
    narrows = _only_narrows(case, spec, usual)
    if not floats or not (whole or usual.rounds or narrows):
        return None
    sources = [
        _ONE if number in floats[1:] else source for number, source in enumerate(_sources(case))
    ]
    found = _with_ordinary(case, HALVES, sources)
    if narrows:
        found = replace(found, standard=_BITS)
    return found if outcome_of(reference, found) is not None else None


def _with_ties_by_one(
    case: Case, spec: OpSpec, reference: Reference, usual: Outcome
) -> Case | None:
    """Return the case of halves with attributes of 1 where they are fractions by which halves would
    be none: a scale of 0.05. Host code may refuse them."""
    # Powers of two leave halves what they are.
    fractions = {
        name
        for name, value in case.attrs
        if isinstance(value, float) and math.frexp(abs(value))[0] not in (0.0, 0.5)
    }
    if not fractions:
        return None
    attrs = tuple((name, 1.0 if name in fractions else value) for name, value in case.attrs)
    found = _with_ties(replace(case, attrs=attrs), spec, reference, usual)
    if found is None:
        return None
    return replace(found, label=f"{found.name}-by_1", may_be_refused=True)


def _with_offset(case: Case, spec: OpSpec, reference: Reference) -> Case | None:
    """Return a case of float32 values far from 0 where the golden's results do not depend on that:
    a variance, what is normalised, a softmax."""
    floats = [number for number in _floats(case, spec) if _sources(case)[number] is None]
    if not floats or case.dtypes[floats[0]].name != "float32":
        return None
    if not all(map(is_float, types_of_outputs(case, spec))):
        return None
    label = replace(case, distribution="offset", label="").name
    sources = _sources(case)
    found, ends = [], []
    for middle in (0.0, _OFFSET):
        sources[floats[0]] = Source("uniform", middle - _SPREAD, middle + _SPREAD)
        # Of one name, on which what is drawn depends.
        found.append(replace(_with_ordinary(case, "normal", sources), label=label))
        ends.append(outcome_of(reference, found[-1]))
    near, far = ends
    if near is None or far is None or not is_in_range(far, found[-1], spec):
        return None
    return found[-1] if any(map(_is_shifted_alike, near.outputs, far.outputs)) else None


def _is_shifted_alike(near: Array, far: Array) -> bool:
    """Whether an output is finite, and what it was before the values were shifted."""
    if near.shape != far.shape or near.dtype.kind not in "fc":
        return False
    if not (_is_finite(near) and _is_finite(far)):
        return False
    largest = float(np.abs(near).max(initial=0.0))
    return largest > 0 and float(np.abs(far - near).max()) <= _SHIFT_INVARIANT * largest


def _with_thresholds(case: Case, spec: OpSpec, reference: Reference, usual: Outcome) -> Case | None:
    """Return a case of small floats that meet each other and the numbers that the golden compares
    with, exactly, and of some beyond these; None where results are not finite."""
    floats = [number for number in _floats(case, spec) if _sources(case)[number] is None]
    if not floats or not usual.decides:
        return None
    sources = _sources(case)
    stream = np.random.default_rng(case.seed)
    for number in floats:
        values = _around(usual.thresholds, case.dtypes[number])
        shape = case.shapes[number]
        if shape is not None:
            drawn = stream.choice(values, math.prod(shape))
            sources[number] = Source(values=tuple(map(float, drawn)))
    plain = replace(case, label="")
    told = replace(plain, distribution="thresholds").name
    label = case.label.replace(plain.name, told) if case.label else told
    found = replace(case, sources=tuple(sources), label=label)
    ended = outcome_of(reference, found)
    if ended is None or not is_in_range(ended, found, spec):
        return None
    return found if all(map(_is_finite, ended.outputs)) else None


def _around(thresholds: Sequence[float], dtype: DType) -> list[float]:
    """Return numbers around thresholds that the type holds: what it has to round is no threshold of
    a kernel's."""
    largest = format_numbers(dtype.name)["largest"] / 4
    near = {0.0, 1.0, -1.0}
    for one in thresholds:
        if abs(one) <= largest:
            near |= {one, -one, 2 * one, one / 2}
    known = sorted(near)
    stored = widen(narrow(np.array(known), dtype), dtype)
    return [value for value, held in zip(known, stored, strict=True) if value == held]


def _only_narrows(case: Case, spec: OpSpec, usual: Outcome) -> bool:
    types = [*case.dtypes[: len(spec.inputs)], *types_of_outputs(case, spec)]
    if len(types) != 2 or not all(map(is_float, types)):
        return False
    (given,) = make_inputs(case)
    if not isinstance(given, np.ndarray) or types[0].size_bytes <= types[1].size_bytes:
        return False
    return bool(np.array_equal(usual.outputs[0], widen(given, types[0])))


def _with_large_whole(
    case: Case, spec: OpSpec, reference: Reference, usual: Outcome
) -> Case | None:
    free = [
        number
        for number, source in enumerate(_sources(case))
        if source is None and _is_whole(case.dtypes[number])
    ]
    bits = dict.fromkeys(free, 0)

    def takes(given: dict[int, int]) -> bool:
        return _takes(_wide_case(case, given), spec, reference, usual)

    for number in free:
        most = _most_bits(case.dtypes[number])
        steps = [*range(_FEWEST_BITS, most, _STEP), most]
        for step in steps:
            if not takes({number: step}):
                break
            bits[number] = step
    bits = {number: count for number, count in bits.items() if count}
    while len(bits) > 1 and not takes(bits):
        most = max(bits.values())
        bits = {n: count - 1 if count == most else count for n, count in bits.items()}
        bits = {n: count for n, count in bits.items() if count >= _FEWEST_BITS}
    return _wide_case(case, bits) if bits else None


def _most_bits(dtype: DType) -> int:
    signed = not dtype.name.startswith("u")
    return min(8 * dtype.size_bytes - signed, 62)


def _wide_case(case: Case, bits: dict[int, int]) -> Case:
    """Return a case whose whole numbers have up to so many bits, by the input's number."""
    sources = [source or _ORDINARY for source in _sources(case)]
    for number, count in bits.items():
        dtype = case.dtypes[number]
        lowest = 0 if dtype.name.startswith("u") else -(1 << count)
        is_all = count == _most_bits(dtype)
        sources[number] = Source("wide", lowest + (not is_all and lowest < 0), (1 << count) - 1)
    return replace(case, distribution="wide", sources=tuple(sources))


def _takes(case: Case, spec: OpSpec, reference: Reference, usual: Outcome) -> bool:
    """Whether the golden computes with these values, and nothing leaves the range of its type."""
    found = outcome_of(reference, case)
    if found is None or [o.shape for o in found.outputs] != [o.shape for o in usual.outputs]:
        return False
    if not is_in_range(found, case, spec):
        return False
    if found.largest_whole == found.largest_fraction == 0.0 and not _only_moves(case, found):
        return max(_bits_of(case)) <= _UNSEEN_BITS
    wholes = [dtype for dtype in case.dtypes if _is_whole(dtype)]
    largest = max(float(np.iinfo(np.dtype(dtype.numpy)).max) for dtype in wholes)
    fraction = max(_EXACT_IN_FLOAT32, usual.largest_fraction)
    return found.largest_whole <= largest + 1 and found.largest_fraction <= fraction


def _only_moves(case: Case, found: Outcome) -> bool:
    given = np.concatenate([array.reshape(-1) for array in tensors_of(make_inputs(case))])
    return all(bool(np.isin(output, given).all()) for output in found.outputs)


def _bits_of(case: Case) -> Sequence[int]:
    return [
        int(source.high).bit_length()
        for source in case.sources
        if source is not None and source.distribution == "wide" and source.high is not None
    ]
