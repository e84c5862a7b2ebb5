"""Every element-wise function of the device over the whole range of its type, against float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

TYPES = (torch.float32, torch.float16, torch.bfloat16)
DIGITS = {torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}
LEAST_EXPONENT = {torch.float32: -126, torch.float16: -14, torch.bfloat16: -126}
LIMIT_ULP = 4.0
"""Of a unit in the last place, for functions; values on which torch's CPU is no better may be off
by more."""
REASONS: Mapping[str, str] = {
    "sinc": "of the angle, pi * x, the last bit is rounded",
    "gelu": "the exponent of the tail is rounded: 2e-6 of what is below 1e-8",
    "gelu_tanh": "the argument of the exponential is rounded",
    "softplus_beta": "the product with beta is rounded",
    "tanhshrink": "PyTorch makes it of a difference",
    "d_silu": "a difference of numbers near 1, as PyTorch's",
    "d_gelu": "a sum that cancels, and the square in an exponential",
    "d_gelu_tanh": "a sum that cancels",
    "d_mish": "a sum that cancels",
    "d_tanh": "made of the result: 1 - y * y",
    "d_sigmoid": "made of the result: y * (1 - y)",
    "d_expm1": "made of the result: y + 1",
    "d_erf": "the square in the exponential is rounded",
    "logaddexp": "a sum that cancels",
    "logaddexp2": "a sum that cancels",
    "erf": "a fit of 6 units in the last place where compiled",
    "erfc": "a fit of 6 units in the last place",
    "lgamma": "below 0 a difference of logarithms that cancels",
    "digamma": "a sum that cancels next to its zeros: 6 units in the last place",
    "trigamma": "below 0 the square of a sine: 6 units in the last place",
    "mish": "a quotient of sums and two products: 6 units in the last place",
}
"""What is worse than the limit, and why: such errors stay below it next to 1, or to an operand."""
LESS_EXACT = ("erf", "erfc", "mish", "digamma", "trigamma")
"""Those of them that half as much again is allowed."""


SIGNS = ("signbit", "copysign")
"""A half type's NaN has no sign any more once it is a float, nor has one in compiled kernels."""
ANGLES = ("sin", "cos", "tan", "sinc")
LARGEST_ANGLE = 1000.0
"""Compiled kernels take multiples of pi off in float32: next to 1 they are as exact, but not next
to the zeros of sine and cosine, by which the tangent multiplies."""


def gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def result(x: Any) -> Any:
        taken = x.clone().requires_grad_()
        value = function(taken)
        value.backward(torch.ones_like(value))
        return taken.grad

    return result


NAMES = "neg abs sgn sign relu exp exp2 log log1p expm1 log2 log10 sqrt rsqrt reciprocal sigmoid"
NAMES += " tanh sin cos tan asin acos atan sinc sinh cosh asinh acosh atanh erf erfc floor ceil"
NAMES += " trunc round frac square angle isinf signbit lgamma digamma erfinv"
ONE: dict[str, Callable[[Any], Any]] = {name: getattr(torch, name) for name in NAMES.split()}
ONE |= {
    name: getattr(F, name)
    for name in [
        "silu",
        "gelu",
        "hardtanh",
        "hardsigmoid",
        "hardswish",
        "softplus",
        "elu",
        "selu",
        "celu",
        "mish",
        "logsigmoid",
        "tanhshrink",
        "softsign",
        "leaky_relu",
    ]
}
ONE |= {
    "entr": torch.special.entr,
    "trigamma": lambda x: torch.polygamma(1, x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus_beta": lambda x: F.softplus(x, 2.5, 10),
    "pow2": lambda x: x**2,
    "pow3": lambda x: x**3,
    "pow7": lambda x: x**7,
    "pow0.5": lambda x: x**0.5,
    "pow-3": lambda x: x**-3,
    "pow1.75": lambda x: x**1.75,
    "2**x": lambda x: 2.0**x,
    "10**x": lambda x: 10.0**x,
    "remainder3": lambda x: x % 3,
    "fmod-3": lambda x: torch.fmod(x, -3.0),
    "lerp": lambda x: torch.lerp(x, torch.ones_like(x), 0.75),
}
SLOPES = "silu gelu gelu_tanh softplus mish elu logsigmoid sigmoid tanh hardswish log1p expm1 erf"
ONE |= {f"d_{name}": gradient(ONE[name]) for name in SLOPES.split()}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(torch, name)
    for name in [
        "atan2",
        "hypot",
        "logaddexp",
        "logaddexp2",
        "xlogy",
        "copysign",
        "fmod",
        "remainder",
        "pow",
        "div",
        "mul",
        "add",
        "fmax",
        "maximum",
        "floor_divide",
    ]
}


def values(dtype: Any) -> Any:
    """All values of a half type; of float32 as many, in every exponent, and exact numbers."""
    if dtype != torch.float32:
        return torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(dtype)
    chance = torch.Generator().manual_seed(0)
    bits = (torch.arange(32768) << 17) + torch.randint(0, 1 << 17, (32768,), generator=chance)
    spread = (bits - (bits >= 1 << 31).long() * (1 << 32)).to(torch.int32).view(torch.float32)
    whole = torch.arange(-2048.0, 2048.0)
    near = torch.randn(8000, generator=chance)
    ends = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 3.4e38, 1e5, 2e5, 1e6, 1e10]
    parts = [spread, whole, whole / 2, near, near * 20, near * 1e-3, 1 + near * 1e-4]
    return torch.cat([*parts, torch.tensor(ends)])


def errors(got: Any, wanted: Any, dtype: Any, beside: Any) -> Any:
    """Distances in units in the last place, of `beside` where that is larger."""
    size = torch.maximum(wanted.abs(), beside)
    exponent = (torch.frexp(size)[1] - 1).clamp(min=LEAST_EXPONENT[dtype])
    unit = torch.ldexp(torch.ones_like(wanted), exponent - DIGITS[dtype])
    off = (got.double() - wanted).abs() / unit
    is_same = (got.double() == wanted.to(dtype).double()) | (got.isnan() & wanted.isnan())
    off = torch.where(is_same, 0.0, off)
    return torch.where(off.isnan(), math.inf, off)


def worst(
    name: str,
    function: Callable[..., Any],
    given: tuple[Any, ...],
    got: Any,
    *,
    is_beside: bool = False,
) -> str:
    """What is off by more than the limit, and by more than torch's CPU is; empty if nothing is."""
    dtype = given[0].dtype
    wanted = function(*(x.double() for x in given)).double()
    if name == "trigamma":
        # A pole, where PyTorch divides by the sine of pi as a float is near it.
        x = given[0].double()
        wanted[(x <= 0) & x.isfinite() & (x == x.floor())] = math.inf
    on_cpu = function(*given).to(dtype)
    got = got.cpu().to(dtype)
    beside = torch.zeros_like(wanted)
    if is_beside or name in REASONS:
        beside = torch.stack([torch.ones_like(wanted), *(x.double().abs() for x in given)]).amax(0)
        # Where PyTorch's difference of infinities is no number, a value is as good.
        beside = torch.where(beside.isfinite(), beside, 1.0)
    limit = 1.5 * LIMIT_ULP if name in LESS_EXACT else LIMIT_ULP
    off = errors(got, wanted, dtype, beside)
    if name in REASONS:
        # Where PyTorch's difference of infinities is no number, a value is as good.
        off[wanted.isnan()] = 0
    if name in SIGNS and dtype != torch.float32:
        off[given[-1].isnan()] = 0
    bad = torch.nonzero((off > limit) & (off > errors(on_cpu, wanted, dtype, beside))).flatten()
    if not len(bad):
        return ""
    at = int(bad[off[bad].argmax()])
    operands = ", ".join(str(x[at].item()) for x in given)
    text = f"{name}({operands}) is {got[at].item()}, not {wanted[at].item()}"
    return f"{text}; {len(bad)} values, worst {off[at].item():.3g} ulp"


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_function_holds_over_the_whole_range_of_its_type(dtype: Any) -> None:
    # softplus and mish were 0 around -17, elu(-1e-5) was off by 1e-3, 1e10 % 3 was 0, sin(1e10)
    # -5e25, 10.0 ** 7 was 9999998.
    x = values(dtype)
    y = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]
    found = [worst(name, f, (x,), f(x.to("npu"))) for name, f in ONE.items()]
    found += [worst(name, f, (x, y), f(x.to("npu"), y.to("npu"))) for name, f in TWO.items()]
    assert [text for text in found if text] == []


ENDS = (0.0, -0.0, 1.0, -5.0, 0.5, 1e-40, -3e38, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_a_function_of_equal_values_holds_too(name: str) -> None:
    # fmod(5, nan) and fmod(5, 0) were 5 where no lane of the tile had anything to divide.
    function = ONE.get(name) or TWO[name]
    pairs = [(a, b) for a in ENDS for b in ENDS] if name in TWO else [(a,) for a in ENDS]
    found = []
    for pair in pairs:
        given = tuple(torch.full((64,), number) for number in pair)
        found.append(worst(name, function, given, function(*(x.to("npu") for x in given))))
    assert [text for text in found if text] == []


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_a_number_beyond_the_whole_type_is_what_it_is_on_the_cpu(dtype: Any) -> None:
    # clamp(x, min=-3) of uint8 kept 0, remainder by -3 was 254: the number was not of the type.
    x = torch.arange(8).to(dtype)
    names = [
        "add",
        "sub",
        "mul",
        "eq",
        "lt",
        "ge",
        "remainder",
        "fmod",
        "floor_divide",
        "clamp_min",
        "clamp_max",
    ]
    for name in names:
        for number in (-3, 300, 1 << 40, math.nan, 0.5):
            results = []
            for device in ("cpu", "npu"):
                try:
                    results.append(getattr(torch, name)(x.to(device), number).cpu())
                except (RuntimeError, ZeroDivisionError) as error:
                    results.append(str(error).split("\n")[0])
            case = f"{name}({dtype}, {number}): {results}"
            if isinstance(results[0], str) or isinstance(results[1], str):
                assert results[0] == results[1], case
            else:
                torch.testing.assert_close(results[1], results[0], equal_nan=True, msg=case)


def test_what_is_compiled_is_as_exact_as_what_is_not() -> None:
    # gelu(1e-5) was off by 2.7e-6 where compiled, tanh above 1, and mish's gradient -2383 at 1e10.
    names = ["gelu", "gelu_tanh", "softplus", "mish", "elu", "log1p", "expm1", "sinh", "asinh"]
    names += ["atanh", "sign", "remainder3", "pow7", "pow1.75", "2**x", "exp2", "silu"]
    x = values(torch.float32)
    compiled = torch.compile(lambda x: [ONE[name](x) for name in names], backend="opkit")
    results = dict(zip(names, compiled(x.to("npu")), strict=True))
    found = [worst(name, ONE[name], (x,), got) for name, got in results.items()]
    for name in ("mish", "gelu", "gelu_tanh"):
        compiled_slope = gradient(torch.compile(ONE[name], backend="opkit"))
        found.append(worst(f"d_{name}", ONE[f"d_{name}"], (x,), compiled_slope(x.to("npu"))))
    assert [text for text in found if text] == []


def every(functions: list[Callable[..., Any]], *given: Any) -> list[Any]:
    return [function(*given) for function in functions]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_every_function_is_as_exact_where_compiled(part: int) -> None:
    # hardswish(1e38) was infinite where compiled, sinh(89) in both.
    x = values(torch.float32)
    y = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]
    found = []
    for functions, given in ((ONE, (x,)), (TWO, (x, y))):
        names = [name for name in functions if not name.startswith("d_") and name != "tan"][part::6]
        torch.compiler.reset()
        compiled = torch.compile(every, backend="opkit")
        results = compiled([functions[name] for name in names], *(each.to("npu") for each in given))
        for name, got in zip(names, results, strict=True):
            is_near = given[-1].abs() < LARGEST_ANGLE if name in ANGLES else given[-1] == given[-1]
            kept = is_near if name in (*ANGLES, *SIGNS) else torch.ones_like(is_near)
            operands = tuple(each[kept] for each in given)
            is_angle = name in ANGLES
            off = worst(name, functions[name], operands, got.cpu()[kept], is_beside=is_angle)
            found.append(off)
    for name in SLOPES.split()[part::6]:
        torch.compiler.reset()
        compiled_slope = gradient(torch.compile(ONE[name], backend="opkit"))
        found.append(worst(f"d_{name}", ONE[f"d_{name}"], (x,), compiled_slope(x.to("npu"))))
    assert [text for text in found if text] == []


def test_hyperbolic_functions_end_where_float32_does() -> None:
    # Of 89 they were infinite: twice the value is.
    x = torch.tensor([89.0, -89.41, 1.5, 0.25])
    for function in (torch.sinh, torch.cosh):
        right = function(x.double()).float()
        compiled = torch.compile(function, backend="opkit")
        for got in (function(x.to("npu")), compiled(x.to("npu"))):
            torch.testing.assert_close(got.cpu(), right, rtol=4e-7, atol=0)


def test_angles_of_ends_are_as_exact_where_compiled() -> None:
    # atan2(-0, -1) was pi, atan2(inf, inf) NaN and atan2(1e-40, 1e-40) 0.01.
    pairs = [(a, b) for a in ENDS for b in ENDS]
    y, x = (torch.tensor(side).repeat_interleave(16) for side in zip(*pairs, strict=True))
    compiled = torch.compile(torch.atan2, backend="opkit")
    assert worst("atan2", torch.atan2, (y, x), compiled(y.to("npu"), x.to("npu"))) == ""


def test_powers_of_whole_numbers_are_whole() -> None:
    base = [float(b) for b in range(2, 60) for e in range(1, 25) if b**e < 1 << 24]
    exponent = [float(e) for b in range(2, 60) for e in range(1, 25) if b**e < 1 << 24]
    wanted = [b**e for b, e in zip(base, exponent, strict=True)]
    got = torch.tensor(base).to("npu") ** torch.tensor(exponent).to("npu")
    assert got.tolist() == wanted


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_whole_numbers_are_compared_with_any_number(dtype: Any) -> None:
    # A number that int64 does not hold became 0: arange(4) < inf was False.
    x = torch.arange(4).to(dtype)
    for number in (math.inf, -math.inf, math.nan, 1e30, -1e30, 0.5, 2, 255, True):
        for compare in (torch.lt, torch.le, torch.gt, torch.ge, torch.eq, torch.ne):
            assert compare(x.to("npu"), number).tolist() == compare(x, number).tolist()


def test_whole_numbers_take_no_number_that_they_do_not_have() -> None:
    for dtype, number in ((torch.int64, math.inf), (torch.int8, 300), (torch.int32, 1 << 40)):
        x = torch.ones(3, dtype=dtype, device="npu")
        mask = torch.ones(3, dtype=torch.bool, device="npu")
        with pytest.raises(RuntimeError, match="without overflow"):
            x.masked_fill_(mask, number)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_random_numbers_stay_below_their_end(dtype: Any) -> None:
    # Rounding to a half type made 1.0 of what is below 1.
    torch.manual_seed(0)
    x = torch.rand(300_000, device="npu", dtype=dtype)
    y = torch.empty(300_000, device="npu", dtype=dtype).uniform_(1, 2)
    assert (x.min() >= 0).item()
    assert (x.max() < 1).item()
    assert (y.min() >= 1).item()
    assert (y.max() < 2).item()


def test_interpolation_by_a_number_ends_where_it_ends() -> None:
    # lerp(1e8, 1, 1) was 0, and from -inf to 1 NaN.
    start, end = torch.tensor([1e8, -math.inf, 3.0]), torch.tensor([1.0, 1.0, 4.0])
    for weight in (0.0, 0.25, 0.75, 1.0):
        got = torch.lerp(start.to("npu"), end.to("npu"), weight).cpu()
        assert torch.equal(got.nan_to_num(7), torch.lerp(start, end, weight).nan_to_num(7))


def test_masks_fill_views_that_do_not_lie_side_by_side() -> None:
    # The second try, with packed operands, ended in an assertion of the iterator.
    mask = torch.eye(3, dtype=torch.bool)
    for view in (lambda x: x[:, 0], lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[::2].t()):
        x = torch.arange(36.0).reshape(6, 6)[:3, :3].clone()
        y = x.clone().to("npu")
        view(x).masked_fill_(view(mask), -1.0)
        view(y).masked_fill_(view(mask).to("npu"), -1.0)
        assert torch.equal(x, y.cpu())


def test_what_masks_refuse_on_the_cpu_is_refused() -> None:
    x = torch.ones(3, device="npu")
    with pytest.raises(RuntimeError, match="0-dimensional value tensor"):
        x.masked_fill_(x > 0, torch.ones(3, device="npu"))
    with pytest.raises(RuntimeError, match="boolean masks"):
        x.masked_fill_(x, 1.0)
    with pytest.raises(RuntimeError, match="output with shape"):
        x.masked_fill_(torch.ones(2, 3, dtype=torch.bool, device="npu"), 1.0)
