"""References of operators that quantise their result, against NumPy's of the same formulas."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.testing.opdef_cases import library_cases
from opkit.testing.references.by_name import find_by_name
from tests.testing.test_by_name import _given, _normal, operator

pytestmark = pytest.mark.torch
RMS_EPSILON = 1e-6


def _rms_normed(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    normed: np.ndarray = x / np.sqrt((x**2).mean(-1, keepdims=True) + RMS_EPSILON) * gamma
    return normed


def _layer_normed(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    normed: np.ndarray = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta
    return normed


def _by_row(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.abs(value).max(-1) / 127
    return value / scales[..., None], scales


def _are_close(given: list[np.ndarray], expected: tuple[np.ndarray | None, ...]) -> None:
    assert len(given) == len(expected)
    for one, other in zip(given, expected, strict=True):
        if other is None:
            assert one.item() is None
        else:
            np.testing.assert_allclose(one, other, atol=1e-9)


def test_values_are_multiplied_and_added_before_they_are_rounded() -> None:
    x, scale = _normal((3, 5), (5,))
    spec = operator(
        "AscendQuantV2",
        "x scale offset?",
        "y:int8",
        'sqrt_mode:bool=false round_mode:string="round" dst_type:int=2 axis:int=-1',
    )
    for root in (False, True):
        given = _given(
            spec, x, scale, None, sqrt_mode=root, round_mode="round", dst_type=2, axis=-1
        )
        _are_close(given, (x * scale * (scale if root else 1),))


def test_rows_are_quantised_by_their_largest_value() -> None:
    (x,) = _normal((3, 5))
    spec = operator("DynamicQuant", "x smooth_scales?", "y:int8 scale", "dst_type:int=2")
    _are_close(_given(spec, x, None, dst_type=2), _by_row(x))


def test_rows_without_symmetry_use_the_whole_type() -> None:
    (x,) = _normal((3, 5))
    spec = operator(
        "DynamicQuantV2",
        "x smooth_scales?",
        "y:int8 scale offset",
        'dst_type:int=2 is_symmetrical:bool=false quant_mode:string="pertoken"'
        " dst_type_max:float=0.0",
    )
    attrs = {"is_symmetrical": False, "quant_mode": "pertoken", "dst_type_max": 0.0}
    y, scale, offset = _given(spec, x, None, dst_type=2, **attrs)
    np.testing.assert_allclose(y.max(-1), 127)
    np.testing.assert_allclose(y.min(-1), -128)
    np.testing.assert_allclose((y - offset[:, None]) * scale[:, None], x, atol=1e-12)


def test_what_is_normalised_after_a_sum_is_quantised_once() -> None:
    x1, x2, gamma, scales = _normal((3, 5), (3, 5), (5,), (5,))
    normed = _rms_normed(x1 + x2, gamma)
    spec = operator(
        "AddRmsNormQuant",
        "x1 x2 gamma scales1 scales2?",
        "y1:int8 y2:int8 x",
        "axis:int=-1 epsilon:float=0.000001 div_mode:bool=true dst_type:int=2",
    )
    attrs = {"axis": -1, "epsilon": RMS_EPSILON, "div_mode": True, "dst_type": 2}
    _are_close(_given(spec, x1, x2, gamma, scales, None, **attrs), (normed / scales, None, x1 + x2))
    spec = operator(
        "AddRmsNormDynamicQuantV2",
        "x1 x2 gamma smooth_scale1?",
        "y1:int8 y2:int8 y3 y4 x scale1 scale2",
        "epsilon:float=0.000001 output_mask:list_bool=[] dst_type:int=2",
    )
    attrs = {"epsilon": RMS_EPSILON, "output_mask": (), "dst_type": 2}
    quantised, by = _by_row(normed)
    _are_close(
        _given(spec, x1, x2, gamma, None, **attrs),
        (quantised, None, normed, normed, x1 + x2, by, None),
    )


def test_layer_norms_are_quantised_by_what_is_given() -> None:
    x, gamma, beta, scale = _normal((3, 5), (5,), (5,), (1,))
    offset = np.array([3])
    spec = operator(
        "LayerNormQuant",
        "x gamma beta scale offset:int8",
        "result:int8 scale_out",
        "epsilon:float=0.00001 quant_mode:int=0",
    )
    given = _given(spec, x, gamma, beta, scale, offset, epsilon=1e-5, quant_mode=0)
    _are_close(given, (_layer_normed(x, gamma, beta) / scale + 3, None))
    x1, x2, bias, scales, scales2 = _normal((3, 5), (3, 5), (5,), (5,), (5,))
    normed = _layer_normed(x1 + x2 + bias, gamma, beta)
    spec = operator(
        "DuaQuantizeAddLayerNorm",
        "x1 x2 gamma beta bias scales1 scales2",
        "y1:int8 y2:int8 x",
        "dtype:int axis:int=-1 epsilon:float=0.00001 additional_output:bool=false",
    )
    attrs = {"dtype": 2, "axis": -1, "epsilon": 1e-5, "additional_output": True}
    _are_close(
        _given(spec, x1, x2, gamma, beta, bias, scales, scales2, **attrs),
        (normed / scales, normed / scales2, x1 + x2 + bias),
    )


@pytest.mark.parametrize("op", ["AddLayerNormQuant", "AddLayerNormQuantV2"])
def test_a_layer_norm_is_quantised_twice_by_rows_or_by_what_is_given(op: str) -> None:
    between = "layernorm_res " if op.endswith("V2") else ""
    spec = operator(
        op,
        "x1 x2 gamma beta bias? scales1? scales2? zero_points1? zero_points2?",
        f"y1:int8 y2:int8 x {between}out_scales1 out_scales2",
        'quant_mode:string="dynamic" epsilon:float=0.00001 additional_output:bool=false'
        " div_mode:bool=true",
    )
    x1, x2, gamma, beta, bias, one, other, point = _normal((3, 5), (3, 5), *[(5,)] * 6)
    attrs = {"quant_mode": "dynamic", "epsilon": 1e-5, "additional_output": True, "div_mode": True}
    norm = _layer_normed(x1 + x2, gamma, beta)
    y, scales = _by_row(norm)
    results = (y, None, x1 + x2, *([norm] if between else []), scales, None)
    _are_close(_given(spec, x1, x2, gamma, beta, *[None] * 5, **attrs), results)
    norm = _layer_normed(x1 + x2 + bias, gamma, beta)
    (y1, scales1), (y2, scales2) = _by_row(norm * one), _by_row(norm * other)
    results = (y1, y2, x1 + x2 + bias, *([norm] if between else []), scales1, scales2)
    given = _given(spec, x1, x2, gamma, beta, bias, one, other, None, None, **attrs)
    _are_close(given, results)
    for divides in (True, False):
        attrs |= {"quant_mode": "static", "div_mode": divides}
        y1 = (norm / one if divides else norm * one) + point
        results = (y1, None, x1 + x2 + bias, *([norm] if between else []), None, None)
        given = _given(spec, x1, x2, gamma, beta, bias, one, None, point, None, **attrs)
        _are_close(given, results)


def test_a_root_norm_is_quantised_with_what_is_added_before_or_after() -> None:
    x1, x2, gamma, bias, one, other, point = _normal((3, 5), (3, 5), *[(5,)] * 5)
    spec = operator(
        "AddRmsNormQuantV2",
        "x1 x2 gamma scales1 scales2? zero_points1? zero_points2? bias?",
        "y1:int8 y2:int8 x resOut",
        "axis:int=-1 epsilon:float=0.000001 div_mode:bool=true dst_type:int=2"
        " output_res:bool=false",
    )
    attrs = {"axis": -1, "epsilon": RMS_EPSILON, "div_mode": True, "dst_type": 2}
    norm = _rms_normed(x1 + x2, gamma)
    _are_close(
        _given(spec, x1, x2, gamma, one, other, point, point, bias, output_res=False, **attrs),
        ((norm + bias) / one + point, (norm + bias) / other + point, x1 + x2, None),
    )
    attrs["div_mode"] = False
    given = _given(spec, x1, x2, gamma, one, *[None] * 4, output_res=True, **attrs)
    _are_close(given, (norm * one, None, None, norm))
    x, scale, offset = x1, np.array([0.25]), np.array([2])
    spec = operator(
        "RmsNormQuant",
        "x gamma beta scale offset:int8",
        "y:int8",
        "epsilon:float=0.1 high_precision_mode:bool=false gemma_mode:bool=false dst_type:int=2",
    )
    attrs = {"epsilon": RMS_EPSILON, "high_precision_mode": False, "gemma_mode": False}
    given = _given(spec, x, gamma, bias, scale, offset, dst_type=2, **attrs)
    _are_close(given, ((_rms_normed(x, gamma) + bias) * 4 + 2,))


@pytest.mark.parametrize("left", [True, False])
def test_a_gate_is_quantised_by_rows_or_by_what_is_given(left: bool) -> None:
    x, smooth, offsets = _normal((3, 10), (1, 5), (1, 5))
    gate, other = (x[:, :5], x[:, 5:])[:: 1 if left else -1]
    value = gate / (1 + np.exp(-gate)) * other * smooth
    spec = operator(
        "SwiGluQuant",
        "x smooth_scales? offsets? group_index?",
        "y:int8 scale",
        'activate_left:bool=false quant_mode:string="dynamic" group_list_type:int=0 dst_type:int=2',
    )
    attrs = {"activate_left": left, "group_list_type": 0, "dst_type": 2}
    factor = 127 / np.abs(value).max(1)
    given = _given(spec, x, smooth, None, None, quant_mode="dynamic", **attrs)
    _are_close(given, (value * factor[:, None], factor))
    given = _given(spec, x, smooth, offsets, None, quant_mode="static", **attrs)
    _are_close(given, (value + offsets, None))


def test_products_of_whole_numbers_are_scaled() -> None:
    (scale, rows) = _normal((4,), (3,))
    x1, x2 = np.arange(15).reshape(3, 5) - 7, np.arange(20).reshape(4, 5) - 9
    bias = np.array([3, -2, 5, 7])
    spec = operator(
        "QuantBatchMatmulV3",
        "x1:int8 x2:int8 scale offset? bias? pertoken_scale?",
        "y",
        "dtype:int transpose_x1:bool=false transpose_x2:bool=false group_size:int=0",
    )
    attrs = {"dtype": 0, "transpose_x1": False, "transpose_x2": True, "group_size": 0}
    product = x1 @ x2.T
    expected = (product + bias) * scale * rows[:, None]
    _are_close(_given(spec, x1, x2, scale, None, bias, rows, **attrs), (expected,))
    expected = product * scale + 0.5
    _are_close(_given(spec, x1, x2, scale, None, bias * 0 + 0.5, None, **attrs), (expected,))
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, x1, x2, bias, None, None, None, **attrs)
    x, offset = _normal((3, 5), (4,))
    spec = operator(
        "WeightQuantBatchMatmulV2",
        "x weight:int8 antiquant_scale antiquant_offset? quant_scale? quant_offset? bias?",
        "y",
        "transpose_x:bool=false transpose_weight:bool=false antiquant_group_size:int=0"
        " dtype:int=-1 inner_precise:int=0",
    )
    attrs = {"transpose_x": False, "transpose_weight": False, "antiquant_group_size": 0}
    given = _given(
        spec, x, x2.T, scale, offset, None, None, rows[:1], dtype=-1, inner_precise=0, **attrs
    )
    _are_close(given, (x @ ((x2.T + offset) * scale) + rows[:1],))


def test_cases_fill_the_type_and_say_which_it_is() -> None:
    spec = operator("Quantize", "x scales", "y:int8", "dtype:string axis:int=1")
    for case in library_cases(spec, "x / scales if scales.size == 1 and axis < x.ndim else None"):
        assert dict(case.attrs)["dtype"] == "torch.qint8"
        source = case.sources[1]
        assert source is not None and 0 < source.low < source.high < 1


def test_a_batch_norm_of_whole_numbers_takes_and_gives_them_by_scale_and_point() -> None:
    x = np.random.default_rng(3).integers(0, 100, (2, 3, 4, 5)).astype(float)
    mean, weight, bias = _normal((3,), (3,), (3,))
    var = np.array([0.5, 1.0, 2.0])
    scales = [np.array([one]) for one in (0.25, 7.0, 0.5, -3.0)]
    spec = operator(
        "QuantizedBatchNorm",
        "x:int8 mean var input_scale input_zero_point:int32 output_scale output_zero_point:int32"
        " weight? bias?",
        "y:int8",
        "epsilon:float",
    )
    shape = (1, 3, 1, 1)
    for gamma, beta in ((weight, bias), (None, None)):
        (y,) = _given(spec, x, mean, var, *scales, gamma, beta, epsilon=0.125)
        normed = ((x - 7) * 0.25 - mean.reshape(shape)) / np.sqrt(var + 0.125).reshape(shape)
        if gamma is not None and beta is not None:
            normed = normed * gamma.reshape(shape) + beta.reshape(shape)
        np.testing.assert_allclose(y, normed / 0.5 - 3)
    found = find_by_name(spec)
    assert found is not None
    for case in library_cases(spec, found.expression, found=found):
        shapes = dict(zip([tensor.name for tensor in spec.inputs], case.shapes, strict=True))
        assert shapes["x"] is not None and shapes["mean"] == shapes["x"][1:2]


def test_what_is_quantised_and_back_says_which_numbers_were_within_bounds() -> None:
    (x,) = _normal((3, 4))
    x *= 4
    scale, point = np.array([0.25, 0.5, 1.0]), np.array([2.0, -1.0, 0.0])
    spec = operator(
        "FakeQuantAffineCachemask",
        "x scale zero_point:int32",
        "y mask:bool",
        "axis:int=-1 quant_min:int=0 quant_max:int=1",
    )
    y, mask = _given(spec, x, scale, point, axis=0, quant_min=-4, quant_max=3)
    scales, points = scale[:, None], point[:, None]
    wholes = np.round(x / scales) + points
    np.testing.assert_allclose(y, (np.clip(wholes, -4, 3) - points) * scales)
    np.testing.assert_array_equal(mask, (wholes >= -4) & (wholes <= 3))
    assert 0 < mask.sum() < mask.size
    (y, mask) = _given(spec, x, scale[:1], point[:1], axis=0, quant_min=-99, quant_max=99)
    assert mask.all()
    np.testing.assert_allclose(y, np.round(x / 0.25) * 0.25)
