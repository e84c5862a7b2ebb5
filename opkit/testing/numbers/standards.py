"""Precision standards, one row each: what is measured per element, how it is gathered, the limit.

To add a standard, add a row to `STANDARDS`: its measures and its numbers per data type, with the
document that they are from. Everything that a standard measures is smaller when it is better.
Under every standard NaN must stand where the golden has NaN; infinities likewise, unless the row
says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.schema import nearest
from opkit.testing.numbers import measures as of
from opkit.testing.numbers.measures import FORMATS, Measure, Numbers, format_numbers

__all__ = [
    "EXACT",
    "ROUNDED",
    "STANDARDS",
    "Measure",
    "Standard",
    "double_level",
    "find_standard",
]


@dataclass(frozen=True)
class Standard:
    """A named set of measures, all of which must hold."""

    name: str
    summary: str
    source: str
    measures: tuple[Measure, ...]
    """The first one decides which element is the worst."""
    numbers: Mapping[str, Numbers]
    """Per data type name; a type that is missing here is compared bit for bit if it is whole."""
    infinity_is_largest: bool = False
    """Whether an infinity on one side only counts as the type's largest number."""
    also_whole: bool = False
    """Whether it judges whole numbers too, which are compared exactly under the others."""
    base: str = ""
    """The standard whose measures and numbers these are; empty for one of its own."""
    forgives_cancellation: bool = False
    """Whether it excuses elements whose error the operator's own condition explains."""

    @property
    def needs_second(self) -> bool:
        """Whether it compares with a second reference, of the kernel's own precision."""
        return any(measure.is_ratio for measure in self.measures)

    def numbers_for(self, dtype: DType) -> Numbers:
        """Return the numbers of a data type, with those of its format.

        Raises:
            UsageError: the standard's document gives none.
        """
        if dtype.name not in self.numbers:
            raise UsageError(
                f'the precision standard "{self.name}" has no limits for {dtype.name}',
                help="it has them for " + ", ".join(self.numbers),
            )
        return {**format_numbers(dtype.name), **self.numbers[dtype.name]}

    def element_limit(self, dtype: DType) -> float:
        """Return the relative error that is allowed for one element; one ulp where none is.

        Raises:
            UsageError: the standard's document gives no numbers for the data type.
        """
        numbers = self.numbers_for(dtype)
        if "T" in numbers:
            return 10 * numbers["T"]
        return numbers["rtol"] if "rtol" in numbers else float(2.0 ** -numbers["fraction"])

    def with_numbers(self, changes: Mapping[str, Numbers]) -> Standard:
        """Return the standard with some numbers replaced, by data type.

        Raises:
            UsageError: a number that the standard does not have.
        """
        numbers = {name: dict(row) for name, row in self.numbers.items()}
        known = list(next(iter(self.numbers.values()), {}))
        for dtype, row in changes.items():
            for key, value in row.items():
                if key not in known:
                    raise UsageError(
                        f'the precision standard "{self.name}" has no number "{key}"',
                        help="it has " + ", ".join(known) if known else "it has none to change",
                    )
                numbers.setdefault(dtype, {})[key] = float(value)
            missing = [key for key in known if key not in numbers[dtype]]
            if missing:
                raise UsageError(
                    f'the precision standard "{self.name}" has no limits for {dtype}:'
                    f" give {', '.join(missing)} too"
                )
        return replace(self, numbers=numbers)


# Whole numbers and booleans, under nearly every standard.
EXACT = Standard(
    "exact",
    "every element equal",
    "whole-number results have one right value",
    #        name         gather  element     limit          strict
    (Measure("different", "mean", of.differs, lambda n: 0.0, False),),
    {},
    also_whole=True,
)

_TTK = "TTK (hicann/ops-test-kit, docs/Precision_Comparison.md)"

# Our addition to the standards that let a share of the elements be anything: a few elements from
# the wrong place would pass them. One beyond TTK's cap of `mixed` and half the golden fails.
_GROSS = Measure("gross", "count", of.gross, lambda n: 0.0, False)
_CAPS = {"float16": 1e-1, "bfloat16": 1.0, "float32": 1e-2}
_WITH_GROSS = "our addition: no element off by more than `gross` + |g| / 2"

# T of MERE < T and MARE < 10 T. The last three are formats that no tensor here has: name one of
# them as a project's `numbers_of` where float32 holds products of such numbers.
_T = {
    "float16": {"T": 2.0**-10},
    "bfloat16": {"T": 2.0**-7},
    "float32": {"T": 2.0**-13},
    "hifloat32": {"T": 2.0**-11},
    "float8_e4m3": {"T": 2.0**-3},
    "float8_e5m2": {"T": 2.0**-2},
}

# Whole numbers that a reference gives with a fraction: what they are rounded from. The kernel
# rounds a float32 of its own, so that near a tie both neighbours are right. Cast gives 8 bits of
# float16 alone, half a step of which is on the way of every float32. Source: Ascend C API, Cast,
# table of supported combinations.
_T_OF_ROUNDED = {
    **dict.fromkeys(("int8", "uint8"), _T["float32"]["T"] + 2.0**-11),
    **dict.fromkeys(("int16", "uint16", "int32"), _T["float32"]["T"]),
}
ROUNDED = Standard(
    "rounded",
    "every element a rounding of the golden, or of what is a relative 2^-13 from it; 8 bits: also"
    " half a step of float16 on the way",
    "our own rule: T of float32, in units of the whole number",
    #        name      gather  element             limit            strict
    (Measure("beyond", "max", of.beyond_rounding, lambda n: n["T"], False),),
    {
        name: {
            "T": relative,
            "lowest": float(np.iinfo(name).min),
            "highest": float(np.iinfo(name).max),
        }
        for name, relative in _T_OF_ROUNDED.items()
    },
    also_whole=True,
)

_ECOSYSTEM = Standard(
    "ecosystem",
    "mean relative error below T, largest below 10 T",
    "CANN operator precision standard (hicann/opbase, ops_precision_standard/"
    "experimental_standard.md): RE = |a - g| / (|g| + 1e-7); our addition: a difference below the"
    " type's smallest positive number counts as none",
    #        name    gather  element                limit                  strict
    (
        Measure("MERE", "mean", of.relative_of_format, lambda n: n["T"], True),
        Measure("MARE", "max", of.relative_of_format, lambda n: 10 * n["T"], True),
    ),
    _T,
)

# The default. The condition is `opkit.testing.numbers.condition`'s.
_CONDITIONED = replace(
    _ECOSYSTEM,
    name="conditioned",
    summary="as ecosystem, without the elements that cancel for every float32 implementation",
    source=_ECOSYSTEM.source + "; our addition: what 8 times the change of the golden explains,"
    " when one input at a time is a rounding away, is excused",
    base="ecosystem",
    forgives_cancellation=True,
)

_STAT_REL_ERR = Standard(
    "stat_rel_err",
    "mean relative error below T, largest below 10 T, small values by absolute error",
    f"{_TTK}, stat_rel_err: as ecosystem, without our addition; |g| below the small value domain's"
    " bound is judged by the absolute error",
    #        name           gather  element               limit                  strict
    (
        Measure("MERE", "mean", of.relative, lambda n: n["T"], True, of.in_normal_domain),
        Measure("MARE", "max", of.relative, lambda n: 10 * n["T"], True, of.in_normal_domain),
        Measure("small_wrong", "count", of.above_small_error, lambda n: 0.0, False,
                of.in_small_domain),
    ),
    {
        name: {**_T[name], "small": small, "small_error": error}
        for name, (small, error) in {
            "float16": (2.0**-11, 2.0**-16),
            "bfloat16": (2.0**-8, 2.0**-16),
            "float32": (2.0**-14, 2.0**-30),
        }.items()
    },
)  # fmt: skip

_MIXED = Standard(
    "mixed",
    "99 % of elements within atol + rtol |g|, none off by more than a cap",
    f"{_TTK}, mixed, TTK's default: the cap is on the absolute error, 32 ulp are always allowed",
    #        name       gather  element                  limit                strict
    (
        Measure("outside", "mean", of.outside_tolerance, lambda n: n["unmatched"], False),
        Measure("beyond", "max", of.absolute_beyond_ulps, lambda n: n["cap"], False),
    ),
    {
        name: {"rtol": rtol, "atol": atol, "cap": cap, "unmatched": 0.01, "free_ulps": 32.0}
        for name, (rtol, atol, cap) in {
            "float16": (2.0**-9, 2.0**-9, 1e-1),
            "bfloat16": (2.0**-6, 2.0**-6, 1.0),
            "float32": (2.0**-10, 2.0**-16, 1e-2),
            "hifloat32": (2.0**-9, 2.0**-10, 1e-1),
            "float8_e4m3": (2.0**-2, 2.0**-4, 1.0),
            "float8_e5m2": (2.0**-1, 2.0**-3, 1e-1),
        }.items()
    },
)

_CLOSE = Standard(
    "close",
    "share of elements outside atol + rtol |g| within bounds",
    f"{_TTK}, close; {_WITH_GROSS}",
    # The rounded golden: correctly rounded bfloat16 lies outside rtol of the unrounded one.
    #        name       gather  element                           limit                strict
    (
        Measure("outside", "mean", of.outside_tolerance_of_rounded, lambda n: n["ptol"], False),
        _GROSS,
    ),
    {
        name: {"rtol": rtol, "atol": 1e-8, "ptol": ptol, "gross": _CAPS[name]}
        for name, (rtol, ptol) in {
            "float16": (1e-3, 1e-3),
            "bfloat16": (1e-3, 1e-3),
            "float32": (1e-4, 1e-4),
        }.items()
    },
)

# The small value domain: |g| < small is judged by |a - g| > small_error.
_SMALL = {
    "float16": {"small": 2.0**-11, "small_error": 2.0**-16},
    "bfloat16": {"small": 2.0**-8, "small_error": 2.0**-16},
    "float32": {"small": 2.0**-14, "small_error": 2.0**-30},
}


def _double(level: str, largest: float, mean: float, rms: float) -> Standard:
    normal, small = of.in_normal_domain, of.in_small_domain
    return Standard(
        f"double_{level}",
        f"errors at most {largest:g}, {mean:g} and {rms:g} times those of a second reference",
        f"double benchmark, {level.upper()}: TTK cross_check and msprobe (Ascend/msprobe,"
        " docs/en/accuracy_checker/pytorch_accuracy_checker_instruct.md)",
        #        name           gather   element               limit             strict domain ratio
        (
            Measure("max_RE_ratio", "max", of.relative, lambda n: largest, False, normal, True),
            Measure("mean_RE_ratio", "mean", of.relative, lambda n: mean, False, normal, True),
            Measure("RMSE_ratio", "rms", of.absolute, lambda n: rms, False, None, True),
            Measure("small_ratio", "count", of.above_small_error, lambda n: 2.0, False, small,
                    True),
        ),
        _SMALL,
    )  # fmt: skip


_CANN_BENCH = Standard(
    "cann_bench",
    "as ecosystem, apart from small values and cancellation, which are counted",
    "cann-bench (hicann/cann-bench, docs/design/precision_comparison_design.md); an infinity on one"
    " side only is the type's largest number",
    #        name               gather   element               limit                  strict domain
    (
        Measure("MERE", "mean", of.relative, lambda n: n["T"], True, of.in_plain_domain),
        Measure("MARE", "max", of.relative, lambda n: 10 * n["T"], True, of.in_plain_domain),
        Measure("small_ratio", "count", of.above_small_error, lambda n: 2.0, False,
                of.in_small_domain, True),
        Measure("cancellation_ratio", "count", of.everywhere, lambda n: 2.0, False,
                of.in_cancellation_domain, True),
    ),
    {
        name: {**_T[name], **_SMALL[name], "cancellation": bound}
        for name, bound in {
            "float16": 2.0**-5,
            "bfloat16": 2.0**-3,
            "float32": 2.0**-8,
        }.items()
    },
    infinity_is_largest=True,
)  # fmt: skip

_ULP = Standard(
    "ulp",
    "distance in units in the last place: the share beyond a bound, or the mean",
    "msprobe, ULP (Ascend/msprobe, docs/en/accuracy_checker): 16-bit types by the share above 1 ulp"
    f"; float32 by the mean, or the share above 32 ulp; {_WITH_GROSS}",
    #        name        gather  element       limit                     strict
    (
        Measure("mean_ulp", "mean", of.ulps, lambda n: n["mean_ulp"], True, None, False, "ulp"),
        Measure("above_ulp", "mean", of.above_ulps, lambda n: n["share"], True, None, False, "ulp"),
        _GROSS,
    ),
    {
        # No mean is enough for the 16-bit types: 0 is a limit that nothing is below.
        "float16": {"mean_ulp": 0.0, "ulp": 1.0, "share": 0.001, "gross": 0.1},
        "bfloat16": {"mean_ulp": 0.0, "ulp": 1.0, "share": 0.001, "gross": 1.0},
        "float32": {"mean_ulp": 64.0, "ulp": 32.0, "share": 0.05, "gross": 0.01},
    },
)

_BINARY = Standard(
    "binary",
    "every element is the golden, rounded to the type",
    f"{_TTK}, binary_equal: bit for bit, whatever bits NaN has",
    #        name         gather  element                  limit          strict
    (Measure("different", "mean", of.differs_from_rounded, lambda n: 0.0, False),),
    {name: {} for name in FORMATS},
)

_REQUANT = Standard(
    "requant",
    "99.9 % of elements within one ulp",
    f"{_TTK}, requant; {_WITH_GROSS}",
    #        name       gather  element        limit                strict
    (Measure("above_ulp", "mean", of.above_ulps_of_rounded, lambda n: n["share"], False), _GROSS),
    {name: {"ulp": 1.0, "share": 1e-3, "gross": cap} for name, cap in _CAPS.items()},
)

_QUANT = Standard(
    "quant",
    "whole numbers off by one at the most",
    f"{_TTK}, quant: |a - g| <= 1, no exception",
    #        name         gather  element        limit          strict
    (Measure("above_step", "mean", of.above_step, lambda n: 0.0, False),),
    {name: {} for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")},
    also_whole=True,
)

_MSOPST = Standard(
    "msopst",
    "95 % of elements within 1 %, none off by more than 10 %",
    "msOpST's error_threshold (Ascend/msopgen, tools/msopst, compare_data.py) without its hole:"
    " there any result within an absolute 0.01 counted as right, NaN too",
    #        name       gather  element                limit                  strict
    (
        Measure("outside", "mean", of.outside_larger, lambda n: n["unmatched"], False),
        Measure("largest", "max", of.relative_to_larger, lambda n: n["largest_error"], True),
    ),
    {
        name: {"rtol": 0.01, "atol": 2.0**-14, "unmatched": 0.05, "largest_error": 0.1}
        for name in ("float16", "bfloat16", "float32")
    },
)

STANDARDS: Mapping[str, Standard] = {
    row.name: row
    for row in (
        _CONDITIONED,
        _ECOSYSTEM,
        _MIXED,
        _CLOSE,
        _STAT_REL_ERR,
        #       level  max RE  mean RE  RMSE: ratios to the second reference
        _double("l0", 10.0, 2.0, 2.0),
        _double("l1", 5.0, 1.5, 1.5),
        _double("l2", 2.0, 1.2, 1.2),
        _CANN_BENCH,
        _ULP,
        _BINARY,
        _REQUANT,
        _QUANT,
        _MSOPST,
        EXACT,
    )
}

# Which level of the double benchmark an operator is held to; the rest is L0. Source: as _double's.
_LEVELS = {
    "l1": ("embedding", "fusion_attention", "scatter"),
    "l2": (
        *("addmm", "mm", "matmul", "layer_norm", "layernorm", "rms_norm", "rmsnorm", "sum"),
        *("index", "gelu", "cross_entropy", "one_hot", "nonzero"),
    ),
}


def double_level(kernel: str) -> str:
    """Return the double benchmark that the documents hold an operator to, by its name."""
    padded = f"_{kernel}_"
    for level, words in _LEVELS.items():
        if any(f"_{word}_" in padded for word in words):
            return f"double_{level}"
    return "double_l0"


def find_standard(name: str) -> Standard:
    """Return the standard called `name`.

    Raises:
        UsageError: there is none; the nearest name is in its help.
    """
    if name in STANDARDS:
        return STANDARDS[name]
    near = nearest(name, STANDARDS)
    known = ", ".join((*STANDARDS, "double (the level by the operator's name)"))
    raise UsageError(
        f'"{name}" is not a precision standard',
        help=f'did you mean "{near}"? There are {known}' if near else f"one of {known}",
    )
