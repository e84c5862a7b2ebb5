"""Element-wise functions of `npu` over the whole range of their types, in units in the last place.

    python benchmarks/npu_whole_range.py [NAME ...] [--all]

Functions, values and documented reasons are those of `tests/torch_npu/test_whole_range.py`: every
value of a half type; of float32 as many over all exponents, whole numbers, halves, denormals,
infinities, NaN and zeros. Right is PyTorch's CPU in float64, and the worst value of each function
is computed again by mpmath where it has that function. A row is worse than 2 units (functions that
are no arithmetic: 4): its worst value, what the CPU in the same type is off by there, at how many
values of those it is worse than the CPU, and why.
`--all` prints those that are not worse, too.
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mpmath
import torch
from table import print_figure, print_head

KNOWN: Mapping[str, Any] = runpy.run_path(
    str(Path(__file__).parents[1] / "tests" / "torch_npu" / "test_whole_range.py")
)
ARITHMETIC = (
    "neg abs sgn sign relu sqrt reciprocal floor ceil trunc round frac square angle isinf signbit"
    " hardtanh hardsigmoid hardswish leaky_relu softsign pow2 pow3 remainder3 fmod-3 lerp hypot"
    " copysign fmod remainder div mul add fmax maximum floor_divide d_hardswish"
)
LIMITS = {True: 2.0, False: 4.0}
"""By whether a function is arithmetic, in units in the last place."""
DIGITS = 60
NAMES_IN_MPMATH = (
    "exp log log10 sqrt tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfc"
    " expm1 log1p atan2 hypot"
)
EXACT: dict[str, Callable[..., Any]] = {
    name: getattr(mpmath, name) for name in NAMES_IN_MPMATH.split()
}
EXACT |= {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "2**x": lambda x: mpmath.mpf(2) ** x,
    "10**x": lambda x: mpmath.mpf(10) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "gelu": lambda x: x * mpmath.ncdf(x),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "mish": lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
    "tanhshrink": lambda x: x - mpmath.tanh(x),
    "sinc": lambda x: mpmath.sincpi(x),
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "pow": lambda x, y: x**y,
    "div": lambda x, y: x / y,
    "d_sigmoid": lambda x: 1 / (2 + mpmath.exp(x) + mpmath.exp(-x)),
    "d_tanh": lambda x: mpmath.sech(x) ** 2,
    "d_erf": lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
    "d_expm1": mpmath.exp,
    "d_log1p": lambda x: 1 / (1 + x),
}
Row = tuple[float, tuple[float, ...], float, float, float, int]
"""The most that it is off, where, what it gave, what is right, what the CPU is off there, and how
many values are off by more than the limit and than the CPU."""


def off_by(got: Any, wanted: Any, dtype: Any) -> Any:
    """Distances in units in the last place of what is right."""
    return KNOWN["errors"](got, wanted, dtype, torch.zeros_like(wanted))


def exact(name: str, given: tuple[float, ...], found: float) -> float:
    """What mpmath has for these values; `found` where it has no such function or no number."""
    if name not in EXACT:
        return found
    try:
        with mpmath.workdps(DIGITS):
            value = EXACT[name](*(mpmath.mpf(x) for x in given))
        return found if isinstance(value, mpmath.mpc) else float(value)
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
        return found


def measure(name: str, function: Callable[..., Any], given: tuple[Any, ...], limit: float) -> Row:
    """Return the worst value of a function, and what the CPU in the same type makes of it."""
    dtype = given[0].dtype
    got = function(*(x.to("npu") for x in given)).cpu().to(dtype)
    wanted = function(*(x.double() for x in given)).double()
    off = off_by(got, wanted, dtype)
    if name in KNOWN["SIGNS"] and dtype != torch.float32:
        off[given[-1].isnan()] = 0
    beside = off_by(function(*given).to(dtype), wanted, dtype)
    at = int(off.argmax())
    operands = tuple(x[at].item() for x in given)
    right = exact(name, operands, wanted[at].item())
    most = off_by(got[at : at + 1], torch.tensor([right], dtype=torch.float64), dtype)
    beyond = int(((off > limit) & (off > beside)).sum())
    return most.item(), operands, got[at].item(), right, beside[at].item(), beyond


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="all without any")
    parser.add_argument("--all", action="store_true", help="also what is not worse")
    options = parser.parse_args()
    count = worse = unexplained = no_better = 0
    print_head()
    for dtype in KNOWN["TYPES"]:
        x = KNOWN["values"](dtype)
        y = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]
        functions = {name: (f, (x,)) for name, f in KNOWN["ONE"].items()}
        functions |= {name: (f, (x, y)) for name, f in KNOWN["TWO"].items()}
        for name, (function, given) in functions.items():
            if options.names and name not in options.names:
                continue
            limit = LIMITS[name in ARITHMETIC.split()]
            most, operands, got, right, beside, beyond = measure(name, function, given, limit)
            count += 1
            is_worse = most > limit
            worse += is_worse
            reason = KNOWN["REASONS"].get(name, "")
            no_better += is_worse and beyond == 0
            unexplained += is_worse and beyond > 0 and not reason
            if not is_worse and not options.all:
                continue
            at = ", ".join(f"{value:.9g}" for value in operands)
            text = f"{most:.3g} ulp at ({at}): {got:.9g}, not {right:.9g}; CPU {beside:.3g} ulp;"
            text += f" {beyond} values worse than the CPU's"
            print_figure(
                f"{name} {str(dtype)[6:]}", f"{text}; {reason}".rstrip("; "), f"{limit:g} ulp"
            )
    print_figure("functions x types", f"{count}, of {len(x)} values or more", "all")
    print_figure("worse than 2 ulp (no arithmetic: 4)", str(worse), "0 without a reason")
    print_figure(
        "of these at no value worse than torch's CPU in the same type", str(no_better), "-"
    )
    print_figure("of the others without a documented reason", str(unexplained), "0")


if __name__ == "__main__":
    main()
