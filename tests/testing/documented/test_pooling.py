"""References of operators that pool windows, against NumPy's means and maxima of these."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.testing.opdef_cases import library_cases
from opkit.testing.references.by_name import find_by_name
from tests.testing.test_by_name import _given, _normal, operator

pytestmark = pytest.mark.torch
AVERAGES = (
    "ksize:list_int strides:list_int pads:list_int ceil_mode:bool=false"
    ' count_include_pad:bool=true divisor_override:int=0 data_format:string="NDHWC"'
)


def _adaptive(size: int, parts: int) -> list[slice]:
    return [slice(i * size // parts, -(-(i + 1) * size // parts)) for i in range(parts)]


def test_averages_of_windows_have_their_channels_last() -> None:
    (x,) = _normal((2, 4, 5, 6, 3))
    spec = operator("AvgPool3D", "x", "y", AVERAGES)
    attrs = {
        **{"ksize": (2, 3, 2), "strides": (2, 2, 3), "pads": (0, 0, 0), "ceil_mode": False},
        **{"count_include_pad": True, "divisor_override": 0, "data_format": "NDHWC"},
    }
    (y,) = _given(spec, x, **attrs)
    assert y.shape == (2, 2, 2, 2, 3)
    for d, h, w in np.ndindex(2, 2, 2):
        window = x[:, 2 * d : 2 * d + 2, 2 * h : 2 * h + 3, 3 * w : 3 * w + 2]
        np.testing.assert_allclose(y[:, d, h, w], window.mean((1, 2, 3)))
    (first,) = _given(spec, x.transpose(0, 4, 1, 2, 3), **{**attrs, "data_format": "NCDHW"})
    np.testing.assert_array_equal(first, y.transpose(0, 4, 1, 2, 3))
    (sums,) = _given(spec, x, **{**attrs, "divisor_override": 1})
    np.testing.assert_allclose(sums, y * 12)
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, x, **{**attrs, "data_format": "DHWCN"})


def test_adaptive_averages_share_a_tensor_evenly() -> None:
    (x,) = _normal((2, 4, 5, 7, 3))
    attrs = {"output_size": (2, 3, 4), "data_format": "NDHWC"}
    spec = operator(
        "AdaptiveAvgPool3d", "x", "y", 'output_size:list_int data_format:string="NDHWC"'
    )
    (y,) = _given(spec, x, **attrs)
    sides = [list(enumerate(_adaptive(*pair))) for pair in ((4, 2), (5, 3), (7, 4))]
    for (d, ds), (h, hs), (w, ws) in product(*sides):
        np.testing.assert_allclose(y[:, d, h, w], x[:, ds, hs, ws].mean((1, 2, 3)))


def test_an_index_of_what_is_largest_is_known_where_nothing_is_equal() -> None:
    spec = operator(
        "AdaptiveMaxPool3d", "x", "y indices:int32", "output_size:list_int indices_dtype:int=3"
    )
    attrs = {"output_size": (1, 2, 2), "indices_dtype": 3}
    x = np.random.default_rng(0).permutation(4 * 3 * 5).reshape(1, 1, 4, 3, 5).astype(float)
    y, indices = _given(spec, x, **attrs)
    np.testing.assert_array_equal(x.reshape(-1)[indices.reshape(-1)], y.reshape(-1))
    assert y[0, 0, 0, 1, 1] == x[0, 0, :, 1:, 2:].max()
    x[:] = 1.0
    y, indices = _given(spec, x, **attrs)
    assert (y == 1).all() and indices.item() is None
    found = find_by_name(spec)
    assert found is not None
    # So that their indices are judged, no two values of a case are equal.
    for case in library_cases(spec, found.expression, found=found):
        source = case.sources[0]
        assert source is not None and source.values is not None
        assert len(set(source.values)) == len(source.values)


def test_what_surrounds_a_tensor_is_never_largest() -> None:
    (x,) = _normal((1, 2, 5, 6))
    x -= 9
    spec = operator(
        "MaxPoolV3",
        "x",
        "y",
        "ksize:list_int strides:list_int pads:list_int=[0] ceil_mode:bool=false",
    )
    attrs = {
        **{"ksize": (1, 1, 3, 2), "strides": (1, 1, 2, 2), "pads": (1, 1, 0, 0)},
        "ceil_mode": False,
    }
    (y,) = _given(spec, x, **attrs)
    assert y.shape == (1, 2, 3, 3)
    np.testing.assert_array_equal(y[:, :, 0, 0], x[:, :, :2, :2].max((2, 3)))
    np.testing.assert_array_equal(y[:, :, 2, 2], x[:, :, 3:, 4:].max((2, 3)))
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, x, **{**attrs, "pads": (1, 0, 0, 0)})


def test_a_gradient_goes_where_the_largest_of_its_window_stood() -> None:
    x, grad = _normal((1, 2, 2, 3, 4), (1, 2, 1, 2, 2))
    argmax = np.array([0, 5, 5, 23, 7, 7, 7, 1]).reshape(grad.shape)
    expected = np.zeros_like(x)
    for place, value in zip(np.ndindex(grad.shape), grad.reshape(-1), strict=True):
        expected[0, place[1]].reshape(-1)[argmax[place]] += value
    pool = operator(
        "MaxPool3DGradWithArgmax",
        "x grad argmax:int32",
        "y",
        "ksize:list_int strides:list_int pads:list_int dilation:list_int=[1,1,1]"
        ' ceil_mode:bool=false data_format:string="NCDHW"',
    )
    three = dict.fromkeys(("ksize", "strides", "pads", "dilation"), (1, 1, 1))
    (y,) = _given(pool, x, grad, argmax, **three, ceil_mode=False, data_format="NCDHW")
    np.testing.assert_allclose(y, expected)
    adaptive = operator("AdaptiveMaxPool3DGrad", "x grad argmax:int32", "y")
    (y,) = _given(adaptive, x, grad, argmax)
    np.testing.assert_allclose(y, expected)
    for spec in (pool, adaptive):
        found = find_by_name(spec)
        assert found is not None
        for case in library_cases(spec, found.expression, found=found):
            (*_, depth, height, width), pooled, places = case.shapes
            assert pooled == places
            source = case.sources[2]
            assert source is not None and source.values is not None
            assert max(source.values) < depth * height * width


def test_a_place_of_a_case_lies_in_its_window() -> None:
    (x,) = _normal((1, 1, 4, 6, 8))
    spec = operator(
        "MaxPool3DWithArgmaxV2",
        "x",
        "y argmax:int32",
        "ksize:list_int strides:list_int pads:list_int dilation:list_int=[1,1,1]"
        ' ceil_mode:bool=false data_format:string="NCDHW" dtype:int=3',
    )
    found = find_by_name(spec)
    assert found is not None
    shapes = {
        whole: case
        for case in library_cases(spec, found.expression, found=found)
        for whole in case.shapes
    }
    windows = dict(shapes[x.shape].attrs)
    y, argmax = _given(spec, x, **windows)
    np.testing.assert_array_equal(x.reshape(-1)[argmax.reshape(-1)], y.reshape(-1))
    gradient = operator(
        "MaxPool3DGradWithArgmax",
        "x grad argmax:int32",
        "y",
        "ksize:list_int strides:list_int pads:list_int dilation:list_int=[1,1,1]"
        ' ceil_mode:bool=false data_format:string="NCDHW"',
    )
    again = find_by_name(gradient)
    assert again is not None
    cases = library_cases(gradient, again.expression, found=again)
    case = next(case for case in cases if case.shapes[0] == x.shape)
    assert case.shapes[1] == y.shape
    source = case.sources[2]
    assert source is not None and source.values is not None
    given = np.array(source.values, int)
    assert len(set(given)) > 1
    size, step = windows["ksize"], windows["strides"]
    assert isinstance(size, tuple) and isinstance(step, tuple)
    for place, window in zip(given, np.ndindex(y.shape[2:]), strict=True):
        for at, number, length, stride in zip(
            np.unravel_index(place, x.shape[2:]), window, size, step, strict=True
        ):
            assert 0 <= int(at) - number * stride < length


def test_what_an_adaptive_average_gave_is_shared_by_its_window() -> None:
    x, by = _normal((1, 4, 5, 6, 3), (1, 2, 3, 2, 3))
    spec = operator("AdaptiveAvgPool3dGrad", "y_grad x", "x_grad", 'data_format:string="NDHWC"')
    (y,) = _given(spec, by, x, data_format="NDHWC")
    expected = np.zeros_like(x)
    sides = [list(enumerate(_adaptive(*pair))) for pair in ((4, 2), (5, 3), (6, 2))]
    for (d, ds), (h, hs), (w, ws) in product(*sides):
        window = expected[0, ds, hs, ws]
        window += by[0, d, h, w] / np.prod(window.shape[:3])
    np.testing.assert_allclose(y, expected)


def test_what_an_average_gave_is_shared_by_its_window() -> None:
    attrs = {
        **{"ksize": (2, 3, 2), "strides": (2, 2, 3), "pads": (0, 0, 0), "ceil_mode": False},
        **{"count_include_pad": True, "divisor_override": 0, "data_format": "NCDHW"},
    }
    spec = operator("AvgPool3DGrad", "orig_input_shape:int32 grads", "output", AVERAGES)
    (by,) = _normal((2, 3, 2, 2, 2))
    whole = (2, 3, 4, 5, 6)
    (y,) = _given(spec, np.array(whole), by, **attrs)
    expected = np.zeros(whole)
    for d, h, w in np.ndindex(2, 2, 2):
        window = expected[:, :, 2 * d : 2 * d + 2, 2 * h : 2 * h + 3, 3 * w : 3 * w + 2]
        window += by[:, :, d, h, w][..., None, None, None] / 12
    np.testing.assert_allclose(y, expected)
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, np.array(whole), by, **{**attrs, "data_format": "NDHWC"})
    plane = operator(
        "AveragePoolingGrad",
        "orig_input_shape:int64 grad_output",
        "grad_input",
        "kernel_h:int=2 kernel_w:int=2 stride_h:int=1 stride_w:int=1 pad_top:int=0 pad_bottom:int=0"
        " pad_left:int=0 pad_right:int=0 ceil_mode:bool=false count_include_pad:bool=true"
        " divisor_override:int=0",
    )
    pads = dict.fromkeys(("pad_top", "pad_bottom"), 0) | dict.fromkeys(("pad_left", "pad_right"), 1)
    windows = {"kernel_h": 3, "kernel_w": 2, "stride_h": 2, "stride_w": 2}
    rest = {"ceil_mode": False, "count_include_pad": True, "divisor_override": 5}
    (by,) = _normal((1, 2, 2, 3))
    (y,) = _given(plane, np.array((1, 2, 5, 4)), by, **windows, **pads, **rest)
    padded = np.zeros((1, 2, 5, 6))
    for h, w in np.ndindex(2, 3):
        padded[:, :, 2 * h : 2 * h + 3, 2 * w : 2 * w + 2] += by[:, :, h, w][..., None, None] / 5
    np.testing.assert_allclose(y, padded[..., 1:-1])
    for one in (spec, plane):
        found = find_by_name(one)
        assert found is not None
        # Each shape is what torch pools to, or the reference had refused it.
        assert len(library_cases(one, found.expression, found=found)) > 3


def test_a_pool_of_volumes_reads_its_padding_by_sides_and_its_layout_by_name() -> None:
    (x,) = _normal((1, 2, 4, 5, 6))
    x -= 9
    spec = operator(
        "MaxPool3D",
        "x",
        "y",
        "ksize:list_int strides:list_int padding:string pads:list_int=[0,0,0,0,0,0]"
        ' dilation:list_int=[1,1,1,1,1] ceil_mode:int=0 data_format:string="NDHWC"',
    )
    attrs = {
        **{"ksize": (2, 3, 2), "strides": (2, 2, 2), "padding": "CALCULATED", "ceil_mode": 0},
        **{"pads": (0, 0, 1, 1, 1, 1), "dilation": (1, 1, 1, 1, 1), "data_format": "NCDHW"},
    }
    (first,) = _given(spec, x, **attrs)
    assert first.shape == (1, 2, 2, 3, 4)
    np.testing.assert_array_equal(first[:, :, 1, 1, 1], x[:, :, 2:, 1:4, 1:3].max((2, 3, 4)))
    np.testing.assert_array_equal(first[:, :, 0, 0, 0], x[:, :, :2, :2, :1].max((2, 3, 4)))
    (last,) = _given(spec, np.moveaxis(x, 1, -1), **{**attrs, "data_format": "NDHWC"})
    np.testing.assert_array_equal(np.moveaxis(last, -1, 1), first)
    for other in ({"padding": "SAME"}, {"pads": (0, 1, 1, 1, 1, 1)}):
        with pytest.raises(OperatorError, match="it gives nothing"):
            _given(spec, x, **{**attrs, **other})


def test_what_was_not_the_largest_of_its_window_has_no_gradient() -> None:
    spec = operator("MaxPoolingGrad", "dy x y", "dx")
    dy, x = _normal((3, 4), (3, 4))
    y = np.where(np.arange(12).reshape(3, 4) % 2 == 0, x, x + 1)
    (dx,) = _given(spec, dy, x, y)
    np.testing.assert_array_equal(dx, np.where(x == y, dy, 0))
