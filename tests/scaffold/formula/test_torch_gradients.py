"""Gradients against torch's: at ties, at kinks and where a branch not taken is infinite."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from opkit import compiler
from opkit.scaffold.formula import backward, golden_source

from .compiled import compiled, compiled_gradients, computed

torch = pytest.importorskip("torch")


def _maximum(a, b):
    return torch.maximum(torch.as_tensor(a, dtype=a.dtype), torch.as_tensor(b, dtype=a.dtype))


def _minimum(a, b):
    return torch.minimum(torch.as_tensor(a, dtype=a.dtype), torch.as_tensor(b, dtype=a.dtype))


@pytest.fixture(params=["tree", "compiler"])
def gradients(request, make_spec):
    return partial(by_tree, make_spec) if request.param == "tree" else by_compiler


def by_compiler(formula, **inputs):
    """Return the gradients in float64 and in float32, of a cotangent of 1.5."""
    tensors = {name: np.float32([values]) for name, values in inputs.items()}
    seed = np.full_like(next(iter(tensors.values())), 1.5)
    given = {"grad_y": seed, **tensors}
    wide = [
        compiler.evaluate_formulas(
            {"y": f"gradient({formula}, grad_y, {name})"},
            {name: array.astype(np.float64) for name, array in given.items()},
        )
        for name in inputs
    ]
    return wide, [computed(graph, given) for graph in compiled_gradients(formula, **tensors)]


def by_tree(make_spec, formula, **inputs):
    """Return the derived operator's gradients by its golden and by its graph, of a cotangent of
    1.5."""
    spec = make_spec(formula, inputs=tuple(inputs))
    derived = backward(spec)
    assert derived is not None
    module: dict[str, object] = {}
    exec(golden_source(spec), module)
    tensors = {"grad_y": np.full((1, len(next(iter(inputs.values())))), 1.5, np.float32)}
    tensors |= {name: np.float32([values]) for name, values in inputs.items()}
    wide = module[f"{spec.name}_grad"](*tensors.values())
    wide = wide if isinstance(wide, tuple) else (wide,)
    single = [
        np.broadcast_to(computed(compiled(output.formula, **tensors), tensors), array.shape)
        for output, array in zip(derived.outputs, wide, strict=True)
    ]
    return wide, single


def by_torch(function, **inputs):
    tensors = [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in inputs.values()]
    y = function(*tensors)
    found = torch.autograd.grad(y, tensors, torch.full_like(y, 1.5))
    return [one.numpy() for one in found]


F = torch.nn.functional
POINTS = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 7.0, -3.0]
KINKS = [
    ("relu(x)", torch.relu),
    ("maximum(x, 0)", lambda x: _maximum(x, 0.0)),
    ("minimum(x, 0)", lambda x: _minimum(x, 0.0)),
    ("minimum(maximum(x, -1), 1)", F.hardtanh),
    ("maximum(minimum(x, 1), -1)", F.hardtanh),
    ("minimum(relu(x), 6)", F.relu6),
    ("minimum(maximum(x, 0), 6)", F.relu6),
    ("minimum(maximum(x + 3, 0), 6)/6", F.hardsigmoid),
    ("abs(x)", torch.abs),
    ("sign(x)*x", lambda x: torch.sign(x) * x),
    ("sqrt(relu(x))", lambda x: torch.sqrt(torch.relu(x))),
    ("relu(x)**0.5", lambda x: torch.relu(x) ** 0.5),
    ("log(relu(x))", lambda x: torch.log(torch.relu(x))),
    ("1/minimum(x, 0)", lambda x: 1 / _minimum(x, 0.0)),
    ("where(x > 0, x, 0.1*x)", lambda x: F.leaky_relu(x, 0.1)),
    ("max(x, 0) - 0.3*x + log(1 + exp(-abs(x)))", lambda x: F.softplus(x) - 0.3 * x),
    ("x*tanh(softplus(x))", F.mish),
    ("x - tanh(x)", F.tanhshrink),
    ("max(x, axis=-1) + 0*x", lambda x: x.amax(-1, keepdim=True) + 0 * x),
]


@pytest.mark.parametrize(("formula", "function"), KINKS, ids=[f for f, _ in KINKS])
def test_a_gradient_is_torch_s(gradients, formula, function):
    points = POINTS
    if "exp(-abs" in formula:
        # torch's own of this sum of two kinks: 0.5 - 0.3 at 0.
        points = [p for p in POINTS if p] + [0.0]
    wide, single = gradients(formula, x=points)
    (expected,) = by_torch(function, x=points)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(wide[0][finite], expected[finite], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(single[0][finite], expected[finite], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.isnan(single[0]), np.isnan(wide[0]))


def test_the_gradient_of_mish_far_out_is_one(gradients):
    # What was left at the bound of exp(20) counted, times such an x: 1e13.
    wide, single = gradients("x*tanh(softplus(x))", x=[1e30, 1e8, 25.0, -1e30])
    np.testing.assert_allclose(wide[0], [[1.5, 1.5, 1.5, 0.0]], rtol=1e-9)
    np.testing.assert_allclose(single[0], [[1.5, 1.5, 1.5, 0.0]], rtol=1e-6)


def test_equal_values_share_the_gradient_of_maximum(gradients):
    x, b = [1.0, 2.0, -1.0, 0.0], [1.0, 1.0, 3.0, 0.0]
    wide, _ = gradients("maximum(x, b)*3", x=x, b=b)
    for actual, expected in zip(
        wide, by_torch(lambda x, b: torch.maximum(x, b) * 3, x=x, b=b), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def test_a_binary_cross_entropy_from_zero_logits_starts_right(gradients):
    # 1 and 0 where torch has 0.5 and -0.5, so that the first step went the wrong way.
    wide, single = gradients(
        "maximum(x, 0) - x*y0 + log(1 + exp(-abs(x)))", x=[0.0, 0.0], y0=[0.0, 1.0]
    )
    np.testing.assert_array_equal(wide[0] / 1.5, [[0.5, -0.5]])
    np.testing.assert_array_equal(single[0] / np.float32(1.5), [[0.5, -0.5]])


@pytest.mark.parametrize(
    "formula",
    [
        *("sqrt(relu(x))", "relu(x)**0.5", "log(relu(x))", "1/minimum(-x, 0)"),
        *("sqrt(maximum(1 - (x - 3)**2, 0))", "where(x > 0, sqrt(x), 0)"),
        *("where(x > 0, log(x), 0)", "where(x > 0, x**-2, x)"),
    ],
)
def test_what_a_choice_left_out_gives_no_nan(gradients, formula):
    wide, single = gradients(formula, x=[-2.0, -1.0, -0.25])
    assert np.all(np.isfinite(wide[0]))
    assert np.all(np.isfinite(single[0]))


def test_the_shift_of_a_softmax_has_no_gradient_of_its_own(make_spec):
    softmax = "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)"
    x = np.zeros((2, 3), np.float32)
    (graph,) = compiled_gradients(softmax, x=x)
    assert "equal" not in [node.operator for node in graph.nodes]
    (graph,) = compiled_gradients("exp(x - max(x, axis=-1))", x=x)
    assert "equal" in [node.operator for node in graph.nodes]
    derived = backward(make_spec(softmax))
    assert derived is not None
    assert "==" not in str(derived.outputs[0].formula)
    # Without the sum, max is no shift: the largest element has a gradient by way of it.
    other = backward(make_spec("exp(x - max(x, axis=-1))"))
    assert other is not None
    assert "==" in str(other.outputs[0].formula)


def test_what_a_choice_hides_at_some_numbers_is_no_shift(gradients):
    # Where w is small, the row's largest element does not reach the result.
    x, w = [-1.0, 2.0, 0.5], [9.0, 9.0, 9.0]
    wide, single = gradients("minimum(sum(x*max(x, axis=-1), axis=-1) + 2, w)", x=x, w=w)
    (expected, _) = by_torch(
        lambda x, w: torch.minimum((x * x.amax(-1, keepdim=True)).sum(-1, keepdim=True) + 2, w),
        x=x,
        w=w,
    )
    np.testing.assert_allclose(wide[0], expected)
    np.testing.assert_allclose(single[0], expected, rtol=1e-6)
