"""References found by an operator's name: which call it is, and which operators have none."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkit.dtypes import DType, find_dtype
from opkit.errors import OperatorError, UsageError
from opkit.schema import AttrSpec, AttrValue, OpSpec, TensorSpec, snake_case
from opkit.testing import find_by_name, library_cases, make_inputs, project_cases, run_cases
from opkit.testing.cases.expressions import (
    check_expression,
    evaluate_expression,
    is_expression,
)
from opkit.testing.numbers.arrays import Input

FLOAT, INT = "float32", "int32"


def dtype(name: str) -> DType:
    found = find_dtype(name)
    assert found is not None
    return found


def tensor(text: str) -> TensorSpec:
    """Return a tensor from `name`, `name:dtype`, `name?` (optional) or `name*` (a list)."""
    name, _, kind = text.partition(":")
    sort = {"?": "optional", "*": "dynamic"}.get(name[-1], "required")
    return TensorSpec(name.rstrip("?*"), sort, (dtype(kind or FLOAT),), ("ND",))


def operator(op: str, inputs: str, outputs: str = "out", attrs: str = "") -> OpSpec:
    """Return an operator; attributes are `name:type` or `name:type=default`."""
    rows = []
    for item in attrs.split():
        name, _, rest = item.partition(":")
        kind, _, default = rest.partition("=")
        rows.append(AttrSpec(name, kind, not default, json.loads(default) if default else None))
    return OpSpec(
        op,
        snake_case(op),
        tuple(map(tensor, inputs.split())),
        tuple(map(tensor, outputs.split())),
        tuple(rows),
        Path("library"),
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("spec", "call"),
    [
        (operator("Abs", "x"), "torch.abs(x)"),
        (operator("IsFinite", "x"), "torch.isfinite(x)"),
        (operator("RealDiv", "x1 x2"), "torch.true_divide(x1, x2)"),
        (operator("NotEqualV2", "x1 x2"), "torch.ne(x1, x2)"),
        (
            operator("ReduceSum", "x axes:int32", attrs="keep_dims:bool=false"),
            "torch.sum(x, axes.tolist(), keep_dims)",
        ),
        (operator("Gather", "x index:int64", attrs="axis:int"), "torch.gather(x, axis, index)"),
        (operator("SigmoidGrad", "y dy"), "torch.ops.aten.sigmoid_backward(dy, y)"),
        (
            operator("ReluGradV3", "features gradients"),
            "documented.relu_grad_v3(features, gradients)",
        ),
        # The documents of this version say which of two is the gradient.
        (operator("ReluGradV3", "x y", "z"), "documented.relu_grad_v3(x, y)"),
        (operator("TanhGrad", "dy y"), "torch.ops.aten.tanh_backward(dy, y)"),
        (operator("ForeachAbs", "x*", "y*"), "torch._foreach_abs(x)"),
        (
            operator("ForeachAddcdivScalarList", "x1* x2* x3* scalars", "y*"),
            "torch._foreach_addcdiv(x1, x2, x3, scalars.tolist())",
        ),
        (
            operator("MseLoss", "predict label", attrs="reduction:string"),
            "torch.nn.functional.mse_loss(predict, label, reduction=reduction)",
        ),
        (operator("ReluGradV2", "gradients features"), "documented.relu_grad(gradients, features)"),
        (
            operator("RenormV2", "x", attrs="p:float=1 dim:int=0 max_norm:float=5"),
            "torch.renorm(x, p, dim, max_norm)",
        ),
        (operator("BesselI1e", "x"), "torch.special.i1e(x)"),
        (
            operator("SoftMarginLoss", "self target", attrs="reduction:int=1"),
            "torch.nn.functional.soft_margin_loss(self, target, "
            "reduction=('none', 'mean', 'sum')[reduction])",
        ),
        (
            operator("HingeLossGrad", "predict target grad_output", "grad_input"),
            "documented.hinge_loss_grad(grad_output, predict, target)",
        ),
        (operator("FusedMulAddN", "x1 x2 x3", "y"), "documented.fused_mul_add_n(x1, x2, x3)"),
        (
            operator("LeakyReluV2", "x", attrs="negative_slope:float=0.01"),
            "torch.nn.functional.leaky_relu(x, negative_slope)",
        ),
        (operator("Gelu", "x"), "documented.gelu(x)"),
        (operator("Select", "condition:bool x1 x2"), "documented.select(condition, x1, x2)"),
        (operator("SelectV3", "x y b:int8"), "documented.select_by_last(x, y, b)"),
        (
            operator("SoftmaxGradV2", "y dy"),
            "documented.softmax_grad(dy, y)",
        ),
        (operator("LogsigmoidV2", "x"), "torch.nn.functional.logsigmoid(x)"),
        (operator("Softsign", "x"), "torch.nn.functional.softsign(x)"),
        (
            operator("LeakyreluV2", "x", attrs="negativeSlope:float"),
            "torch.nn.functional.leaky_relu(x, negativeSlope)",
        ),
        (
            operator("HardSwishGradV2", "gradOutput self"),
            "torch.ops.aten.hardswish_backward(gradOutput, self)",
        ),
        (
            operator("SoftplusV2Grad", "gradOutput self", attrs="beta:float threshold:float"),
            "torch.ops.aten.softplus_backward(gradOutput, self, beta, threshold)",
        ),
        (
            operator("GeluGradV2", "dy x", attrs="approximate:string"),
            "torch.ops.aten.gelu_backward(dy, x, approximate=approximate)",
        ),
        (
            operator("AtanGrad", "x dy"),
            "torch.autograd.functional.vjp(lambda x: torch.atan(x), x, dy)[1]",
        ),
        (
            operator("MseLossGrad", "predict label dout", attrs="reduction:string"),
            "documented.mse_loss_grad(dout, predict, label, reduction=reduction)",
        ),
        (
            operator("ForeachAddcmulList", "x1* x2* x3* scalars", "y*"),
            "torch._foreach_addcmul(x1, x2, x3, scalars.tolist())",
        ),
        (operator("ConcatDV2", "x*", attrs="concat_dim:int"), "torch.concat(x, concat_dim)"),
        (operator("Transpose", "x perm:int64"), "documented.transpose(x, perm)"),
        (operator("AddExample", "x1 x2"), "torch.add(x1, x2)"),
        (
            operator("AddMatMatElementsPlus", "c a b beta alpha", "c"),
            "documented.add_mat_mat_elements(c, a, b, beta, alpha)",
        ),
        (operator("AxpyV3", "x y", attrs="a:float"), "documented.axpy_of_first(x, y, a=a)"),
        (operator("ConcatV2", "x1 x2", attrs="d:int=0"), "documented.concat_of_two(x1, x2, d=d)"),
        (operator("PackV2", "x y", attrs="d:int=0"), "documented.pack_of_two(x, y, d=d)"),
        (operator("GerV2", "x y A", attrs="alpha:float"), "documented.ger(x, y, A, alpha=alpha)"),
        (
            operator("HuberLossGrad", "predictions targets", attrs="delta:float=1"),
            "documented.huber_loss_grad(predictions, targets, delta=delta)",
        ),
        (
            operator("MatMulV3", "x1 x2 bias?", attrs="transpose_x1:bool transpose_x2:bool"),
            "documented.mat_mul_with_bias(x1, x2, bias=bias, transpose_x1=transpose_x1,"
            " transpose_x2=transpose_x2)",
        ),
        (operator("BatchMatMul", "x1 x2"), "documented.mat_mul(x1, x2)"),
        # What samples and students call so.
        (operator("AddCustom", "x y", "z"), "torch.add(x, y)"),
        (operator("MyGelu", "x", "y"), "documented.gelu(x)"),
        (operator("CustomSinh", "x", "y"), "torch.sinh(x)"),
        (
            operator("SinhCustomGrad", "dy x", "dx"),
            "torch.autograd.functional.vjp(lambda x: torch.sinh(x), x, dy)[1]",
        ),
    ],
    ids=lambda value: value.op if isinstance(value, OpSpec) else "",
)
def test_the_call_takes_every_input_and_attribute(spec: OpSpec, call: str) -> None:
    found = find_by_name(spec)
    assert found is not None and found.expression == call


@pytest.mark.torch
@pytest.mark.parametrize(
    "spec",
    [
        operator("BlendExample", "x1 x2"),
        operator("Abs", "x", attrs="scale:float"),
        operator("Abs", "x y"),
        operator("Abs", "x", outputs="y z"),
        operator("Gather", "x index:int64"),
        operator("ReluGradV2", "gradients mask:uint8"),
        operator("SoftplusGrad", "x y"),
        operator("AtanGrad", "y dy"),
        operator("ReluV4", "x", outputs="y mask:uint8"),
        operator("IndexFillD", "x assist1 assist2", attrs="dim:int"),
        operator("Full", "dims:int32 value"),
        operator("MseLoss", "predict label"),
        operator("Gelu", "x", attrs="scale:float"),
        operator(
            "MarginRankingLoss", "input1 input2 target", attrs="margin:float reduction:string"
        ),
        operator("AtanGrad", "orig_input_shape:int32 grads"),
    ],
    ids=[
        *("unknown", "attribute", "input", "outputs", "axis", "version", "order", "result"),
        *("second_output", "names", "sizes", "reduction", "unused_attribute", "values"),
        "whole_numbers",
    ],
)
def test_what_does_not_fit_whole_is_no_reference(spec: OpSpec) -> None:
    assert find_by_name(spec) is None


@pytest.mark.torch
def test_cases_have_the_shapes_and_values_that_the_reference_takes() -> None:
    spec = operator("ReduceSum", "x axes:int32", attrs="keep_dims:bool=false")
    cases = library_cases(spec, "torch.sum(x, axes.tolist(), keep_dims)", found=find_by_name(spec))
    assert [case.shapes for case in cases][3] == ((3, 5, 65), (1,))
    assert make_inputs(cases[3])[1] == np.array([2], np.int32)
    product = operator("BatchMatMulV3", "x1 x2")
    found = find_by_name(product)
    assert found is not None
    by_shape = {case.shape: case.shapes for case in library_cases(product, found.expression)}
    assert by_shape[(7, 33)] == ((7, 33), (33,))
    divided = operator("FloorDiv", "x1:int32 x2:int32")
    for case in library_cases(divided, "torch.floor_divide(x1, x2)"):
        divisors = make_inputs(case)[1]
        assert isinstance(divisors, np.ndarray) and divisors.min() > 0
    raised = operator("ForeachPowList", "x1*:int32 x2*:int32", "y*:int32")
    for case in library_cases(raised, "torch._foreach_pow(x1, x2)"):
        _, exponents = make_inputs(case)
        assert isinstance(exponents, list)
        assert all(np.isin(tensor, range(4)).all() for tensor in exponents)
    turned = operator("Transpose", "x perm:int64")
    case = library_cases(turned, "torch.permute(x, perm.tolist())", found=find_by_name(turned))[3]
    assert case.shapes == ((3, 5, 65), (3,))
    np.testing.assert_array_equal(make_inputs(case)[1], [2, 1, 0])
    halves = operator("SwiGlu", "x", attrs="dim:int")
    found = find_by_name(halves)
    assert found is not None
    assert all(case.shape[-1] % 2 == 0 for case in library_cases(halves, found.expression))
    with pytest.raises(UsageError, match="it gives complex numbers"):
        library_cases(operator("Complex", "x1 x2"), "torch.complex(x1, x2)")
    with pytest.raises(UsageError, match="no shape that opkit generates fits Abs"):
        library_cases(operator("Abs", "x"), "torch.zeros(3)[7] + x")


@pytest.mark.torch
def test_bounds_of_whole_numbers_stay_apart() -> None:
    # Both were 0: a histogram's then are the data's own.
    for kind, bounds in (("float32", [-0.5, 0.5]), ("int32", [-1, 1]), ("uint8", [0, 1])):
        spec = operator("HistogramV2", f"x:{kind} min:{kind} max:{kind}", "y:int32", "bins:int=9")
        found = find_by_name(spec)
        assert found is not None
        _, *given = make_inputs(library_cases(spec, found.expression, found=found)[0])
        assert [np.asarray(one).tolist() for one in given] == [[bound] for bound in bounds]


@pytest.mark.torch
def test_statistics_have_a_number_a_row_and_scales_one_a_channel() -> None:
    attrs = "num_groups:int=1 swish_scale:float=1 dgamma_is_require:bool=true"
    spec = operator(
        "GroupNormSwishGrad",
        "dy mean rstd x gamma beta",
        "dx dgamma dbeta",
        f"{attrs} dbeta_is_require:bool=true",
    )
    found = find_by_name(spec)
    assert found is not None
    by_shape = {case.shape: case.shapes for case in library_cases(spec, found.expression)}
    rows, whole, channels = (2, 1), (2, 3, 17, 19), (3,)
    assert by_shape[whole] == (whole, rows, rows, whole, channels, channels)


@pytest.mark.torch
def test_one_number_fills_and_variances_are_above_zero() -> None:
    # The value had the mask's shape, and half of the variances were refused by the reference.
    fill = operator("MaskedFill", "x mask:bool value", "z")
    found = find_by_name(fill)
    assert found is not None
    cases = library_cases(fill, found.expression, found=found)
    assert {case.shapes[2] for case in cases} == {(1,)}
    loss = operator(
        "GaussianNllLoss",
        "input target var",
        "loss",
        'full:bool=false eps:float=1e-6 reduction:string="mean"',
    )
    found = find_by_name(loss)
    assert found is not None
    for case in library_cases(loss, found.expression, found=found):
        _, targets, variances = make_inputs(case)
        assert np.asarray(variances).min() > 0
        assert case.shape == (1,) or np.asarray(targets).min() < 0


@pytest.mark.torch
def test_powers_by_one_number_have_the_exponents_that_they_are_called_with() -> None:
    # Any exponents, one for each element, made nothing of what a right kernel computes.
    spec = operator("Pows", "x1 x2", "y")
    found = find_by_name(spec)
    assert found is not None
    cases = library_cases(spec, found.expression, found=found)
    given = [make_inputs(case) for case in cases]
    exponents = {float(np.asarray(x2).item()) for _, x2 in given}
    assert exponents == {-2.0, -1.0, -0.5, 0.5, 2.0, 3.0}
    assert all(np.asarray(x1).min() > 0 for x1, _ in given)


@pytest.mark.torch
def test_places_have_cases_of_their_own() -> None:
    spec = operator(
        "ScatterElementsV2",
        "var indices:int32 updates",
        "var",
        'axis:int=0 reduction:string="none" include_self:bool=true',
    )
    found = find_by_name(spec)
    assert found is not None
    cases = library_cases(spec, found.expression, found=found)
    assert len({case.name for case in cases}) == len(cases) == len(found.together)
    for case in cases:
        var, indices, updates = map(np.asarray, make_inputs(case))
        attrs = dict(case.attrs)
        if attrs["reduction"] == "none":
            # Of two values for one place it is open which stays.
            assert all(len(set(column)) == len(column) for column in indices.T)
        (result,) = evaluate_expression(
            found.expression, spec, [var, indices.astype(np.int64), updates], attrs=attrs
        )
        wanted = var.copy()
        for row, column in np.ndindex(*indices.shape):
            place = indices[row, column], column
            added = 0 if attrs["reduction"] == "none" else wanted[place]
            wanted[place] = added + updates[row, column]
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    # An operator of the name that has other attributes has the general cases.
    foreign = replace(found, together=(replace(found.together[0], attrs={"dim": 0}),))
    assert library_cases(spec, found.expression, found=foreign)[0].shape == (1,)


@pytest.mark.torch
def test_statistics_of_one_row_have_one_axis() -> None:
    # Where a row is one element, each statistic was given two axes, and so were their gradients.
    spec = operator("LayerNormalizationGrad", "dy x gamma mean rstd", "dx dgamma dbeta")
    found = find_by_name(spec)
    assert found is not None
    for case in library_cases(spec, found.expression, found=found):
        assert case.shapes[2:] == (case.shape[1:], case.shape[:1], case.shape[:1])


@pytest.mark.torch
def test_products_are_tried_with_a_bias_and_without() -> None:
    # One whose host code asks for the bias refused every case.
    spec = operator("MatMulV3", "x1 x2 bias?", attrs="transpose_x1:bool transpose_x2:bool")
    found = find_by_name(spec)
    assert found is not None
    cases = library_cases(spec, found.expression, found=found)
    assert {case.shapes[2] for case in cases if case.shape == (7, 33)} == {(65,), None}


@pytest.mark.torch
def test_a_type_of_results_that_takes_other_inputs_has_none_of_the_cases() -> None:
    # Products without a scale were tried as quantised ones, too.
    attrs = "perm_x1:list_int perm_x2:list_int perm_y:list_int batch_split_factor:int=1"
    for result in ("float16", "int8"):
        spec = operator("TransposeBatchMatMul", "x1 x2 bias? scale?", f"y:{result}", attrs)
        found = find_by_name(spec)
        assert found is not None
        with pytest.raises(UsageError) if result == "int8" else nullcontext():
            assert len(library_cases(spec, found.expression, found=found)) == 6


@pytest.mark.torch
def test_a_gradient_by_autograd_is_that_of_the_forward_operator() -> None:
    spec = operator("SwiGluGrad", "y_grad x", attrs="dim:int")
    found = find_by_name(spec)
    assert found is not None and found.used == {"x", "y_grad"}
    x, dy = np.array([[0.5, 2.0]]), np.array([[3.0]])
    (dx,) = evaluate_expression(found.expression, spec, [dy, x], attrs={"dim": 1})
    gate = 1 / (1 + np.exp(-0.5))
    expected = [3 * 2 * (gate + 0.5 * gate * (1 - gate)), 3 * 0.5 * gate]
    np.testing.assert_allclose(dx, [expected], rtol=1e-12)


def test_an_expression_is_checked_and_evaluated_over_inputs_and_attributes() -> None:
    spec = operator("Scale", "x bias?", attrs="by:float=2.0")
    (y,) = evaluate_expression(
        "np.abs(x) * by", spec, [np.array([-1.0, 2.0]), None], attrs={"by": 2.0}
    )
    np.testing.assert_array_equal(y, [2.0, 4.0])
    pair = evaluate_expression("(x, bias is None)", spec, [np.zeros(2), None], attrs={"by": 2.0})
    assert [array.shape for array in pair] == [(2,), ()]
    with pytest.raises(OperatorError, match=r"x \+ bias: TypeError"):
        evaluate_expression("x + bias", spec, [np.zeros(2), None], attrs={"by": 2.0})
    with pytest.raises(UsageError, match='no input or attribute "biass"'):
        check_expression("x + biass", spec, where="here")
    with pytest.raises(UsageError, match="is not an expression"):
        check_expression("x +", spec, where="here")
    check_expression("sum(row.max() for row in x) * by", spec, where="here")
    check_expression("(lambda value: value * by)(x)", spec, where="here")
    kinds = [is_expression(text) for text in ("torch.abs(x)", "x + by", "torch.abs", "g.py:f")]
    assert kinds == [True, True, False, False]


@pytest.mark.torch
@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_a_formula_of_the_documents_is_written_out(beta: float) -> None:
    import torch

    spec = operator(
        "SituGlu", "x", "y", "dim:int=-1 beta:float=4 linear_beta:float=2 activate_left:bool=true"
    )
    found = find_by_name(spec)
    assert found is not None
    x = np.linspace(-3, 3, 12).reshape(2, 6)
    attrs = {"dim": -1, "beta": 4.0, "linear_beta": beta, "activate_left": False}
    up, gate = torch.tensor(x).chunk(2, -1)
    wanted = 4 * torch.tanh(gate / 4) / (1 + torch.exp(-gate))
    wanted = wanted * (beta * torch.tanh(up / beta) if beta else up)
    (result,) = evaluate_expression(found.expression, spec, [x], attrs=attrs)
    np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-12)


@pytest.mark.torch
def test_differences_of_unsigned_numbers_wrap_as_in_their_type() -> None:
    # 3 - 5 was -2 in the reference, which no uint8 is.
    spec = operator("Sub", "x1:uint8 x2:uint8", "y:uint8")
    project: Any = SimpleNamespace(name="sub", operators=(spec,))

    class Subtracts:
        def run(self, op_type: str, inputs: Any, attrs: Any, **named: Any) -> list[Any]:
            return [inputs[0] - inputs[1]]

    cases = project_cases(project, golden=None)
    assert run_cases(project, cases, library=Subtracts(), golden=None).passed


def _given(spec: OpSpec, *inputs: Input, **attrs: AttrValue) -> list[np.ndarray]:
    found = find_by_name(spec)
    assert found is not None
    return list(evaluate_expression(found.expression, spec, inputs, attrs=attrs))


@pytest.mark.torch
def test_numbers_of_padding_are_two_an_axis_in_the_axes_order() -> None:
    x = np.arange(24.0).reshape(1, 4, 6)
    pads = np.array([0, 0, 1, 2, 3, 1])
    (padded,) = _given(operator("CircularPad", "x paddings:int64", "y"), x, pads)
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (1, 2), (3, 1)], mode="wrap"))
    begin, size = np.array([[0, 1, 2], [1, 2, 3]])
    (part,) = _given(operator("SliceV3", "x begin:int64 size:int64", "y"), x, begin, size)
    np.testing.assert_array_equal(part, x[:1, 1:3, 2:5])


@pytest.mark.torch
@pytest.mark.parametrize(
    ("op", "attrs", "mode"),
    [
        ("PadV3GradReplication", "", "edge"),
        ("ReflectionPad3dGrad", "", "reflect"),
        ("CircularPadGrad", "", "wrap"),
        ("PadV4Grad", "mode:string paddings_contiguous:bool=true", "reflect"),
        ("PadV3GradReplicate", "mode:string paddings_contiguous:bool=true", "edge"),
    ],
)
def test_the_gradient_of_padding_is_the_sum_of_what_was_copied(
    op: str, attrs: str, mode: str
) -> None:
    widths = [(0, 0), (1, 2), (2, 1)]
    gradient = np.random.default_rng(1).normal(size=(2, 7, 8))
    places = np.pad(np.arange(2 * 4 * 5).reshape(2, 4, 5), widths, mode=mode)  # type: ignore[call-overload]
    expected = np.bincount(places.ravel(), gradient.ravel()).reshape(2, 4, 5)
    values: dict[str, AttrValue] = {"mode": mode, "paddings_contiguous": True} if attrs else {}
    spec = operator(op, "x paddings:int32", "y", attrs)
    (found,) = _given(spec, gradient, np.array(widths).ravel(), **values)
    np.testing.assert_allclose(found, expected)


@pytest.mark.torch
def test_a_step_of_adam_is_its_documents() -> None:
    names = "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad"
    var, m, v, grad = np.array([[1.0], [0.5], [0.25], [2.0]])
    numbers = [np.array([n]) for n in (0.5, 0.75, 0.1, 0.5, 0.75, 0.01)]
    spec = operator("ApplyAdamD", names, "var m v", attrs="use_nesterov:bool=false")
    new, first, second = _given(spec, var, m, v, *numbers, grad, use_nesterov=False)
    assert (first[0], second[0]) == (0.5 * 0.5 + 0.5 * 2, 0.75 * 0.25 + 0.25 * 4)
    rate = 0.1 * (1 - 0.75) ** 0.5 / (1 - 0.5)
    assert new[0] == pytest.approx(1 - rate * first[0] / (0.01 + second[0] ** 0.5))


@pytest.mark.torch
def test_a_name_that_another_ends_in_is_not_read_as_a_number() -> None:
    spec = operator("AddMatMatElementsPlus", "c a b beta alpha", "c")
    found = find_by_name(spec)
    assert found is not None and dict(found.read) == {"beta": "int", "alpha": "int"}
    shapes = library_cases(spec, found.expression, found=found)[2].shapes
    assert shapes == ((7, 33), (7, 33), (7, 33), (1,), (1,))


def _differentiated(forward: Any, wanted: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    """Return a function's gradients by torch, where `wanted` comes back to its result."""
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in inputs]
    found = torch.autograd.grad(forward(torch, *tensors), tensors, torch.tensor(wanted))
    return [one.numpy() for one in found]


def _normal(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [random.normal(size=shape) for shape in shapes]


@pytest.mark.torch
def test_numbers_are_counted_and_weighed_in_as_many_bins_as_are_asked_for() -> None:
    spec = operator("Bincount", "array:int8 size:int64 weights?", "bins")
    array, (weights,) = np.array([3, 0, 3, 1]), _normal((4,))
    (counts,) = _given(spec, array, np.array([6]), None)
    np.testing.assert_array_equal(counts, [1, 1, 0, 2, 0, 0])
    (sums,) = _given(spec, array, np.array([6]), weights)
    expected = [weights[1], weights[3], 0, weights[0] + weights[2], 0, 0]
    np.testing.assert_allclose(sums, expected)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
def test_whole_numbers_are_a_whole_number_of_steps_apart(kind: str) -> None:
    # 1 to 98 in 17 numbers: kernels cut the fractions off, which no document says or excludes.
    spec = operator("LinSpace", f"start:{kind} stop:{kind} num:int32", f"output:{kind}")
    found = find_by_name(spec)
    assert found is not None
    for case in library_cases(spec, found.expression, found=found):
        inputs = [value for value in make_inputs(case) if isinstance(value, np.ndarray)]
        (y,) = evaluate_expression(found.expression, spec, inputs, attrs=dict(case.attrs))
        np.testing.assert_array_equal(y, np.round(y))
        assert len(np.unique(np.diff(y))) == 1


@pytest.mark.torch
def test_axes_of_one_element_are_repeated_to_a_shape() -> None:
    spec = operator("Expandv", "x", "y", "shape:list_int=[2]")
    (x,) = _normal((3, 1))
    (y,) = _given(spec, x, shape=(2, 3, 4))
    np.testing.assert_array_equal(y, np.broadcast_to(x, (2, 3, 4)))
    found = find_by_name(spec)
    assert found is not None
    assert len(library_cases(spec, found.expression, found=found)) == 6


@pytest.mark.torch
def test_windows_of_all_images_have_one_mask_and_heads_one_bias() -> None:
    spec = operator(
        "MaskedSoftmaxWithRelPosBias",
        "x atten_mask? relative_pos_bias",
        "y",
        "scale_value:float=1.0 inner_precision_mode:int=0",
    )
    x, mask, bias = _normal((4, 3, 5, 7), (2, 5, 7), (3, 5, 7))
    for given in (mask, None):
        (y,) = _given(spec, x, given, bias, scale_value=0.5, inner_precision_mode=0)
        for window, head in np.ndindex(4, 3):
            masked = 0 if given is None else given[window % 2]
            powers = np.exp(0.5 * x[window, head] + masked + bias[head])
            np.testing.assert_allclose(y[window, head], powers / powers.sum(-1, keepdims=True))


@pytest.mark.torch
def test_rows_are_repeated_as_often_as_is_said_and_zeros_fill_the_rest() -> None:
    spec = operator("FeedsRepeat", "feeds feeds_repeat_times:int32", "y", "output_feeds_size:int")
    (x,) = _normal((3, 2))
    (y,) = _given(spec, x, np.array([2, 0, 1]), output_feeds_size=5)
    np.testing.assert_array_equal(y, [x[0], x[0], x[2], [0, 0], [0, 0]])


@pytest.mark.torch
def test_parts_of_all_tensors_are_joined_behind_the_axis_that_is_cut() -> None:
    spec = operator("ChunkCat", "x*", "y", "dim:int num_chunks:int")
    first, second = _normal((3, 2), (4, 2))
    (y,) = _given(spec, [first, second], dim=0, num_chunks=2)
    padded = np.concatenate([first, np.zeros((1, 2))]).reshape(2, 4)
    np.testing.assert_array_equal(y, np.concatenate([padded, second.reshape(2, 4)], 1))


@pytest.mark.torch
def test_a_slice_with_steps_is_written_and_the_rest_stays() -> None:
    spec = operator(
        "StridedSliceAssignV2",
        "var input_value begin:int64 end:int64 strides:int64 axes?:int64",
        "var",
    )
    var, value = _normal((4, 7), (2, 3))
    slices = np.array([[1, 0], [4, 6], [2, 2]])
    (y,) = _given(spec, var, value, *slices, None)
    expected = var.copy()
    expected[1:4:2, 0:6:2] = value
    np.testing.assert_array_equal(y, expected)
    found = find_by_name(spec)
    assert found is not None
    assert library_cases(spec, found.expression, found=found)


@pytest.mark.torch
def test_the_type_of_a_real_part_is_the_results_own() -> None:
    spec = operator("Real", "input", "output", "Tout:int=0")
    found = find_by_name(spec)
    assert found is not None
    for kind, number in ((FLOAT, 0), ("float16", 1)):
        own = replace(spec, inputs=(tensor(f"input:{kind}"),), outputs=(tensor(f"output:{kind}"),))
        (case, *_) = library_cases(own, found.expression, found=found)
        assert dict(case.attrs) == {"Tout": number}
    (part,) = _given(spec, np.array([1 + 2j, -3 + 4j]), Tout=0)
    np.testing.assert_array_equal(part, [1, -3])


@pytest.mark.torch
@pytest.mark.parametrize("op", ["LayerNormGradV3", "LayerNormalizationGrad"])
def test_gradients_of_layer_norm_take_its_statistics(op: str) -> None:
    x, dy, gamma = _normal((3, 5), (3, 5), (5,))
    mean, rstd = x.mean(-1), 1 / np.sqrt(x.var(-1) + 1e-5)
    expected = _differentiated(
        lambda torch, x, g, b: torch.nn.functional.layer_norm(x, (5,), g, b),
        *(dy, x, gamma, np.zeros(5)),
    )
    if op == "LayerNormGradV3":
        spec = operator(op, "dy x rstd mean gamma", "a b c", "output_mask:list_bool=[true]")
        given = _given(spec, dy, x, rstd[:, None], mean[:, None], gamma, output_mask=(True,))
    else:
        given = _given(operator(op, "dy x gamma mean rstd", "a b c"), dy, x, gamma, mean, rstd)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_gradients_of_rms_norm_take_its_root() -> None:
    x, dy, gamma = _normal((3, 5), (3, 5), (5,))
    expected = _differentiated(
        lambda torch, x, g: torch.nn.functional.rms_norm(x, (5,), g, 1e-6), dy, x, gamma
    )
    rstd = 1 / np.sqrt((x**2).mean(-1) + 1e-6)
    given = _given(operator("RmsNormGrad", "dy x rstd gamma", "dx dgamma"), dy, x, rstd, gamma)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_deep_norm_and_its_gradients() -> None:
    x, gx, dy, beta, gamma = _normal((3, 5), (3, 5), (3, 5), (5,), (5,))
    attrs = "alpha:float=0.5 epsilon:float=0.000001"
    mean, rstd, y = _given(
        operator("DeepNorm", "x gx beta gamma", "mean rstd y", attrs),
        *(x, gx, beta, gamma),
        alpha=0.5,
        epsilon=1e-6,
    )
    whole = 0.5 * x + gx
    np.testing.assert_allclose(mean[:, 0], whole.mean(-1))
    np.testing.assert_allclose(y, (whole - mean) * rstd * gamma + beta)
    expected = _differentiated(
        lambda torch, x, gx, b, g: torch.nn.functional.layer_norm(0.5 * x + gx, (5,), g, b, 1e-6),
        *(dy, x, gx, beta, gamma),
    )
    spec = operator("DeepNormGrad", "dy x gx gamma mean rstd", "a b c d", "alpha:float=0.5")
    given = _given(spec, dy, x, gx, gamma, mean, rstd, alpha=0.5)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_gradients_of_group_norm_take_its_statistics() -> None:
    x, dy, gamma = _normal((2, 4, 3), (2, 4, 3), (4,))
    parts = x.reshape(2, 2, 6)
    mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + 1e-5)
    expected = _differentiated(
        lambda torch, x, g, b: torch.nn.functional.group_norm(x, 2, g, b),
        *(dy, x, gamma, np.zeros(4)),
    )
    flags = {f"{name}_is_require": True for name in ("dx", "dgamma", "dbeta")}
    attrs = "num_groups:int=2 data_format:string " + " ".join(f"{f}:bool=true" for f in flags)
    spec = operator("GroupNormGrad", "dy mean rstd x gamma", "dx dgamma dbeta", attrs)
    given = _given(spec, dy, mean, rstd, x, gamma, num_groups=2, data_format="NCHW", **flags)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("left", [False, True])
def test_the_gradient_of_a_gelu_gate_takes_its_gelu(left: bool) -> None:
    import torch

    x, dy = _normal((3, 8), (3, 4))

    def forward(torch: Any, x: Any) -> Any:
        parts = x.chunk(2, -1)
        return torch.nn.functional.gelu(parts[0 if left else 1]) * parts[1 if left else 0]

    (expected,) = _differentiated(forward, dy, x)
    gelu = torch.nn.functional.gelu(torch.tensor(x).chunk(2, -1)[0 if left else 1]).numpy()
    attrs = "dim:int=-1 approximate:int=0 activate_left:bool=false"
    spec = operator("GeGluGradV2", "dy x gelu", "dx", attrs)
    (given,) = _given(spec, dy, x, gelu, dim=-1, approximate=0, activate_left=left)
    np.testing.assert_allclose(given, expected, atol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients_of_a_gaussian_loss_are_the_formulas(reduction: str) -> None:
    x, target, var = _normal((3, 5), (3, 5), (3, 5))
    dy = np.ones((3, 5)) if reduction == "none" else np.ones(1)
    attrs = "full:bool=false eps:float=0.000001 reduction:string"
    spec = operator("GaussianNllLossGrad", "gradOutput input target var", "a b", attrs)
    values: dict[str, AttrValue] = {"full": False, "eps": 1e-6, "reduction": reduction}
    given = _given(spec, dy, x, target, np.abs(var), **values)
    expected = _differentiated(
        lambda torch, x, v: torch.nn.functional.gaussian_nll_loss(
            *(x, torch.tensor(target), v), eps=1e-6, reduction=reduction
        ),
        dy if reduction == "none" else np.array(1.0),
        *(x, np.abs(var)),
    )
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_products_scaled_and_added_to_are_gemm() -> None:
    a, b, c = _normal((3, 4), (5, 4), (3, 5))
    attrs = "alpha:float=1 beta:float=1 transpose_a:bool=false transpose_b:bool=false"
    flags = {"transpose_a": False, "transpose_b": True}
    by_attrs = _given(
        operator("GemmV3", "a b c?", "y", attrs), a, b, c, alpha=2.0, beta=3.0, **flags
    )
    attrs = "transpose_a:bool=false transpose_b:bool=false"
    one, other = np.array([2.0]), np.array([3.0])
    by_inputs = _given(
        operator("GemmV2", "a b alpha beta c", "c", attrs), a, b, one, other, c, **flags
    )
    np.testing.assert_allclose(by_attrs[0], 2 * a @ b.T + 3 * c)
    np.testing.assert_allclose(by_inputs[0], by_attrs[0])


@pytest.mark.torch
def test_modulation_is_that_of_each_matrix() -> None:
    import torch

    x, scale, shift = _normal((2, 3, 5), (2, 1, 5), (2, 1, 5))
    (given,) = _given(operator("Modulate", "x scale shift", "y"), x, scale, shift)
    np.testing.assert_allclose(given, x * (1 + scale) + shift)
    spec = operator("AdaLayerNormV2", "x scale shift", "out mean rstd", "epsilon:float=0.001")
    out, mean, rstd = _given(spec, x, scale, shift, epsilon=1e-3)
    normed = torch.nn.functional.layer_norm(torch.tensor(x), (5,), eps=1e-3).numpy()
    np.testing.assert_allclose(out, normed * (1 + scale) + shift)
    np.testing.assert_allclose((x - mean) * rstd, normed)
    single = operator("AdaLayerNorm", "x scale shift", "out", "epsilon:float=0.001")
    np.testing.assert_allclose(_given(single, x, scale, shift, epsilon=1e-3)[0], out)


@pytest.mark.torch
def test_a_step_of_adam_w_decays_what_it_updates() -> None:
    names = (
        "var m v beta1_power beta2_power lr weight_decay beta1 beta2 epsilon grad max_grad_norm?"
    )
    attrs = "amsgrad:bool=false maximize:bool=false"
    var, m, v, grad = np.array([[1.0], [0.5], [0.25], [2.0]])
    numbers = [np.array([n]) for n in (0.5, 0.75, 0.1, 0.01, 0.5, 0.75, 0.125)]
    spec = operator("ApplyAdamW", names, "var m v", attrs)
    given = [var, m, v, *numbers, grad, np.zeros(1)]
    new, first, second = _given(spec, *given, amsgrad=False, maximize=True)
    assert (first[0], second[0]) == (0.5 * 0.5 - 0.5 * 2, 0.75 * 0.25 + 0.25 * 4)
    step = first / (1 - 0.25) / (np.sqrt(second / (1 - 0.5625)) + 0.125)
    np.testing.assert_allclose(new, 1 - 0.1 * step - 0.1 * 0.01 * 1)


@pytest.mark.torch
def test_a_step_of_ftrl_is_nothing_where_the_linear_part_is_small() -> None:
    names = "var accum linear grad lr l1 l2 lr_power"
    var, accum, linear, grad = np.array([[1.0, 1.0], [1.0, 4.0], [0.5, 0.0], [1.0, 0.01]])
    numbers = [np.array([n]) for n in (0.5, 0.25, 0.125, -0.5)]
    (new,) = _given(operator("ApplyFtrl", names, "var"), var, accum, linear, grad, *numbers)
    root = np.sqrt(2.0)
    moved = 0.5 + 1 - (root - 1) / 0.5
    np.testing.assert_allclose(new, [(0.25 - moved) / (root / 0.5 + 0.25), 0.0])


@pytest.mark.torch
def test_numbers_of_scales_keep_19_bits_beside_a_flag() -> None:
    spec = operator("TransQuantParamV2", "scale offset?", "y:uint64", "round_mode:int=0")
    (bits,) = _given(spec, np.array([1.0001]), np.zeros(1), round_mode=0)
    assert bits[0] == (int(np.float32(1.0001).view(np.uint32)) & 0xFFFFE000) | 1 << 46


@pytest.mark.torch
def test_shapes_of_what_is_normalised_are_found() -> None:
    # No more than two inputs after the first had shapes of their own.
    spec = operator("RmsNormGrad", "dy x rstd gamma", "dx dgamma")
    found = find_by_name(spec)
    assert found is not None
    shapes = [case.shapes for case in library_cases(spec, found.expression, found=found)]
    assert ((3, 5, 65), (3, 5, 65), (3, 5), (65,)) in shapes
    assert ((7, 33), (7, 33), (7,), (33,)) in shapes


@pytest.mark.torch
def test_a_gradient_of_one_number_and_square_matrices_are_found() -> None:
    attrs = "full:bool=false eps:float=0.000001 reduction:string"
    spec = operator("GaussianNllLossGrad", "gradOutput input target var", "a b", attrs)
    found = find_by_name(spec)
    assert found is not None
    case = library_cases(spec, found.expression, found=found)[2]
    assert case.shapes == ((1,), (7, 33), (7, 33), (7, 33))
    squares = library_cases(operator("Slogdet", "self", "sign log"), "torch.slogdet(self)")
    assert [case.shape for case in squares][:2] == [(1, 1), (5, 5)]


@pytest.mark.torch
def test_quotients_of_whole_numbers_are_whole() -> None:
    spec = operator("DivV2", "x1:int32 x2:int32", "y:int32")
    (quotient,) = _given(spec, np.array([-7, 7]), np.array([2, 2]))
    np.testing.assert_array_equal(quotient, [-3, 3])
    np.testing.assert_array_equal(_given(spec, np.array([7.0]), np.array([2.0]))[0], [3.5])


@pytest.mark.torch
def test_what_is_cast_to_a_narrow_type_may_saturate() -> None:
    # It was to wrap as torch does, where kernels compute in half and cast back.
    spec = operator("Sub", "x1:uint8 x2:uint8", "y:uint8")
    project: Any = SimpleNamespace(name="sub", operators=(spec,))

    class Saturates:
        def __init__(self, limit: int) -> None:
            self.limit = limit

        def run(self, op_type: str, inputs: Any, attrs: Any, **named: Any) -> list[Any]:
            found = inputs[0].astype(np.int64) - inputs[1]
            return [np.where(found < 0, self.limit, found).astype(np.uint8)]

    cases = project_cases(project, golden=None)
    assert run_cases(project, cases, library=Saturates(0), golden=None).passed
    assert not run_cases(project, cases, library=Saturates(1), golden=None).passed


@pytest.mark.torch
def test_what_an_opdef_calls_a_scalar_has_one_element() -> None:
    # It had the others' shape, of which such a kernel reads the first element for all.
    spec = operator("AxpyV2", "x1 x2 alpha bias?")
    number, unread = (replace(tensor, is_scalar=True) for tensor in spec.inputs[2:])
    spec = replace(spec, inputs=(*spec.inputs[:2], number, unread))
    for case in library_cases(spec, "x1 + alpha * x2"):
        assert case.shapes == (case.shape, case.shape, (1,), None)
