"""Gradients against central differences of the float64 reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opkit.scaffold.formula import backward, golden_source, unsupported_gradients

FORMULAS = [
    "0.5*x*(1+tanh(sqrt(2/pi)*(x+0.044715*x**3)))",
    "x*sigmoid(x)",
    "log(1+exp(x))*x",
    "abs(x)*max(x, 0)",
    "where(x > 0.25, x**2, exp(x))",
    "(x**2+1)**-1.5",
    "mean(x**2, axis=-1)",
    "max(x, axis=-1)",
    "sqrt(sum(x**2, axis=-1))",
    "exp(x-max(x,axis=-1))/sum(exp(x-max(x,axis=-1)),axis=-1)",
    "x-max(x,axis=-1)-log(sum(exp(x-max(x,axis=-1)),axis=-1))",
    "x*rsqrt(mean(x**2, axis=-1)+1e-6)",
    "(x-mean(x,axis=-1))*rsqrt(mean((x-mean(x,axis=-1))**2,axis=-1)+1e-5)",
]


def module_of(spec):
    module: dict[str, object] = {}
    exec(golden_source(spec), module)
    return module


def check_gradients(spec, inputs, attrs):
    """Compare each gradient with central differences of sum(output * cotangent)."""
    module = module_of(spec)
    forward, gradient = module[spec.name], module[f"{spec.name}_grad"]
    derived = backward(spec)
    assert derived is not None
    random = np.random.default_rng(3)
    cotangent = random.standard_normal(np.shape(forward(*inputs.values(), **attrs)))
    found = gradient(cotangent, *inputs.values(), **attrs)
    found = found if isinstance(found, tuple) else (found,)
    for output, actual in zip(derived.outputs, found, strict=True):
        name = output.name.removeprefix("grad_")
        expected = np.zeros_like(inputs[name])
        for index in np.ndindex(inputs[name].shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = {key: value.copy() for key, value in inputs.items()}
                moved[name][index] += step
                sides.append(np.sum(forward(*moved.values(), **attrs) * cotangent))
            expected[index] = (sides[0] - sides[1]) / 2e-6
        extra = actual.ndim - expected.ndim
        summed = actual.sum(axis=tuple(range(extra)))
        np.testing.assert_allclose(summed, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_gradient_is_the_slope_of_the_forward_operator(make_spec, formula):
    x = np.random.default_rng(1).standard_normal((3, 5))
    check_gradients(make_spec(formula), {"x": x}, {})


def test_a_broadcast_input_gets_its_gradient_summed_by_the_caller(make_spec):
    spec = make_spec(
        "x*rsqrt(mean(x**2, axis=-1)+epsilon)*gamma",
        inputs=("x", "gamma"),
        attrs=[("epsilon", "float", 1e-6)],
    )
    random = np.random.default_rng(2)
    inputs = {"x": random.standard_normal((4, 6)), "gamma": random.standard_normal(6)}
    check_gradients(spec, inputs, {"epsilon": 1e-6})


def test_the_backward_operator_takes_output_gradients_then_the_forward_inputs(make_spec):
    derived = backward(make_spec("x*b", "x+b", inputs=("x", "b"), op="PairCustom"))
    assert derived is not None
    assert (derived.op, derived.name) == ("PairCustomGrad", "pair_custom_grad")
    assert [t.name for t in derived.inputs] == ["grad_y", "grad_y1", "x", "b"]
    assert [t.name for t in derived.outputs] == ["grad_x", "grad_b"]
    assert derived.has_formula


def test_integer_variants_are_left_out_of_the_backward_operator(make_spec):
    derived = backward(make_spec("x*2", dtypes=("float16", "int32", "float32")))
    assert derived is not None
    assert [d.name for d in derived.inputs[0].dtypes] == ["float16", "float32"]


def test_a_value_per_row_gives_a_gradient_in_the_shape_of_its_input(make_spec):
    derived = backward(make_spec("sum(x, axis=-1)"))
    assert derived is not None
    assert derived.outputs[0].formula == "like(row(grad_y), x)"


def test_what_has_no_gradient_is_named_with_its_reason(make_spec):
    assert backward(make_spec(None)) is None
    assert backward(make_spec("floor(x)")) is None
    (missing,) = unsupported_gradients(make_spec("x + floor(b)", inputs=("x", "b")))
    assert missing.input == "b"
    assert "no formula depends on it" in missing.reason
    assert missing.is_zero
    (integer,) = unsupported_gradients(make_spec("x + 1", dtypes=("int32",)))
    assert "not a floating-point tensor" in integer.reason


def test_where_two_tensors_would_have_one_name_there_is_no_backward_operator(make_spec):
    # It used to be an error, so that such an operator could not be generated at all.
    spec = make_spec("x + grad_y", inputs=("x", "grad_y"))
    assert backward(spec) is None
    reasons = {gap.input: gap.reason for gap in unsupported_gradients(spec)}
    assert set(reasons) == {"x", "grad_y"}
    assert 'two tensors called "grad_y"' in reasons["x"]


@pytest.mark.parametrize(
    ("formula", "gradient"),
    [
        ("x*row(s)", "sum(grad_y*x, axis=-1)"),
        ("x + row(s)", "sum(grad_y, axis=-1)"),
        ("mean(x, axis=-1)*row(s)", "row(grad_y)*mean(x, axis=-1)"),
        # Once for every element of the row that it is added to.
        ("sum(x + row(s), axis=-1)", "columns*row(grad_y)"),
    ],
)
def test_a_value_per_row_that_goes_in_has_a_gradient_per_row(make_spec, formula, gradient):
    derived = backward(make_spec(formula, inputs=("x", "s")))
    assert derived is not None
    assert derived.outputs[-1].name == "grad_s"
    assert derived.outputs[-1].formula == gradient
    assert not unsupported_gradients(make_spec(formula, inputs=("x", "s")))


def test_a_gradient_that_no_formula_can_hold_does_not_stop_the_forward_operator(make_spec):
    x = "x"
    for _ in range(12):
        x = f"tanh({x}*b)*sigmoid({x}+b)" if len(x) < 900 else f"({x})*b"
    spec = make_spec(x, inputs=("x", "b"))
    assert backward(spec) is None
    assert "characters" in unsupported_gradients(spec)[0].reason
    assert golden_source(spec) is not None
    # exp(50)**2 is written exp(100) in the gradient, which float32 does not hold.
    assert golden_source(make_spec("x*exp(50)*exp(50)*exp(-50)")) is not None


@pytest.mark.parametrize(
    ("formula", "gradient"),
    [
        # exp(-x)*exp(x) + 1 - (exp(-x)*exp(x) + 1) left a rounding of the sums.
        ("exp(x)*exp(-x) + (x - x)", "grad_y*(0 + 0*exp(x)*exp(-x))"),
        # What is 0 or NaN came first, and 1/x was rounded with it.
        ("x/x + exp(x)*exp(-x)", "grad_y*(1/x - x/x**2 + 0*exp(x)*exp(-x))"),
    ],
)
def test_what_cancels_in_a_gradient_leaves_no_rounding_of_the_rest(make_spec, formula, gradient):
    derived = backward(make_spec(formula))
    assert derived is not None
    assert derived.outputs[0].formula == gradient


def test_a_prototype_may_want_no_gradient(make_spec):
    spec = replace(make_spec("x*2"), gradient=False)
    assert backward(spec) is None
    assert '"gradient": false' in unsupported_gradients(spec)[0].reason
