"""Gelu and its relatives against their formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opkit.errors import KernelFault

FORMULAS = {
    "Gelu": lambda x: x / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))),
    "FasterGelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "FasterGeluV2": lambda x: (
        x
        * (
            np.where(x < 0, -1, 1)
            * (0.5 - 0.1444 * (np.minimum(np.abs(0.7071 * x), 1.769) - 1.769) ** 2)
            + 0.5
        )
    ),
}
TYPES = {"half": np.float16, "float": np.float32}
CASES = {
    f"{name} {kind} {form}": f"{name}{template.format(kind)}({arguments});"
    for name in FORMULAS
    for kind in TYPES
    for form, template, arguments in (
        ("space", "", f"Z({kind}), X({kind}), space, number[0]"),
        ("none", "<{0}, true, false>", f"Z({kind}), X({kind}), number[0]"),
        ("in place", "<{0}, false, true>", f"Z({kind}), Z({kind}), space, number[0]"),
    )
}


@pytest.fixture(scope="module")
def call(compile_cases):
    return compile_cases(CASES)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("kind", TYPES)
def test_every_form_is_within_a_few_ulp_of_the_formula(call, name: str, kind: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 1001), [0.0, 1e-6, -1e-6, 40, -40]]).astype(
        TYPES[kind]
    )
    exact = FORMULAS[name](x.astype(np.float64))
    tolerance = 2e-6 if kind == "float" else 2**-10
    for form in ("space", "none"):
        z = call(f"{name} {kind} {form}", np.full_like(x, 9), x, numbers=(x.size,))
        np.testing.assert_allclose(z, exact, rtol=tolerance, atol=1e-6 if kind == "half" else 1e-7)
    z = call(f"{name} {kind} in place", x, numbers=(x.size,))
    np.testing.assert_allclose(z, exact, rtol=tolerance, atol=1e-6 if kind == "half" else 1e-7)


def test_documented_results_are_met(call) -> None:
    x = np.array([-1.83887, -3.60742, 3.12891, -0.620605, 2.0625], np.float16)
    z = call("FasterGelu half space", np.zeros_like(x), x, numbers=(x.size,))
    expected = [-0.0769653, -0.00775528, 3.11328, -0.160034, 2.00195]
    np.testing.assert_allclose(z.astype(np.float64), expected, rtol=4e-3)
    x = np.array([-1.251, 1.074, -6.137, 0.0841, 5.633], np.float16)
    z = call("FasterGeluV2 half space", np.zeros_like(x), x, numbers=(x.size,))
    np.testing.assert_allclose(
        z.astype(np.float64), [-0.1411, 0.916, 0, 0.0486, 5.633], rtol=4e-3, atol=3e-4
    )


def test_elements_behind_the_count_stay(call) -> None:
    x = np.ones(64, np.float32)
    z = call("Gelu float space", np.full_like(x, 9), x, numbers=(33,))
    assert (z[33:] == 9).all() and (z[:33] != 9).all()


def test_too_little_space_is_a_fault_by_name(call) -> None:
    x = np.ones(64, np.float32)
    with pytest.raises(KernelFault, match="temporary space"):
        call("FasterGeluV2 float space", np.zeros_like(x), x, space=256, numbers=(64,))
