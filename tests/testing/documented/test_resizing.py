"""References of operators that resize images or sample them, against sums in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.testing.documented import resizing
from opkit.testing.documented.table import OF_OPERATORS
from opkit.testing.opdef_cases import library_cases
from opkit.testing.references.by_name import find_by_name
from tests.testing.test_by_name import _given, _normal, operator

pytestmark = pytest.mark.torch

_HW = "scales_h:float=0.0 scales_w:float=0.0"
_DHW = "scale_d:float=0.0 scale_h:float=0.0 scale_w:float=0.0"
_SIZES = "output_size:list_int input_size:list_int"


def _nearest(size: int, wanted: int, *, exact: bool) -> np.ndarray:
    """Return which place of an axis each of its new places takes, as the documents have it."""
    offset = 0.5 if exact else 0.0
    places = np.floor((np.arange(wanted) + offset) * size / wanted).astype(int)
    return np.minimum(places, size - 1)


def _linear(size: int, wanted: int) -> np.ndarray:
    """Return an axis' weights, its new places by its old ones, without aligned corners."""
    weights = np.zeros((wanted, size))
    for place in range(wanted):
        source = max((place + 0.5) * size / wanted - 0.5, 0.0)
        low = int(source)
        weights[place, low] += 1 - (source - low)
        weights[place, min(low + 1, size - 1)] += source - low
    return weights


@pytest.mark.parametrize("exact", [False, True])
def test_the_nearest_of_an_image_with_its_channels_last(exact: bool) -> None:
    (x,) = _normal((2, 7, 9, 3))
    spec = operator(
        "UpsampleNearest", "x", "y", f"output_size:list_int {_HW} exact_mode:bool=false"
    )
    attrs = {"output_size": (11, 4), "scales_h": 0.0, "scales_w": 0.0, "exact_mode": exact}
    (y,) = _given(spec, x, **attrs)
    rows, columns = _nearest(7, 11, exact=exact), _nearest(9, 4, exact=exact)
    np.testing.assert_array_equal(y, x[:, rows][:, :, columns])


def test_a_gradient_of_the_nearest_adds_up_what_a_place_was_taken_for() -> None:
    (by,) = _normal((2, 3, 5, 4, 8))
    spec = operator(
        "UpsampleNearest3dGrad",
        "grad_output",
        "y",
        "input_size:list_int output_size:list_int=[0,0,0] scales:list_float=[0.0,0.0,0.0]",
    )
    attrs = {"input_size": (2, 3, 2, 3, 4), "output_size": (5, 4, 8), "scales": ()}
    (y,) = _given(spec, by, **attrs)
    expected = np.zeros(attrs["input_size"])
    axes = [_nearest(n, m, exact=False) for n, m in ((2, 5), (3, 4), (4, 8))]
    for d, h, w in np.ndindex(5, 4, 8):
        expected[:, :, axes[0][d], axes[1][h], axes[2][w]] += by[:, :, d, h, w]
    np.testing.assert_allclose(y, expected)


def test_three_axes_are_weighed_one_after_the_other() -> None:
    (x,) = _normal((1, 2, 3, 4, 5))
    scales = "scales_d:float scales_h:float scales_w:float"
    spec = operator(
        "ResizeUpsampleTrilinear",
        "input",
        "output",
        f"output_size:list_int align_corners:bool=false {scales}",
    )
    attrs = {"output_size": (6, 3, 7), "align_corners": False}
    none = dict.fromkeys(("scales_d", "scales_h", "scales_w"), 0.0)
    (y,) = _given(spec, x, **attrs, **none)
    weights = [_linear(n, m) for n, m in ((3, 6), (4, 3), (5, 7))]
    np.testing.assert_allclose(y, np.einsum("ncdhw,ad,bh,ew->ncabe", x, *weights))
    gradient = operator(
        "UpsampleBilinear2dGrad",
        "grad_output",
        "grad_input",
        f"{_SIZES} align_corners:bool=false {_HW}",
    )
    (by,) = _normal((1, 2, 3, 7))
    sizes = {"output_size": (3, 7), "input_size": (1, 2, 4, 5), "align_corners": False}
    (to_x,) = _given(gradient, by, **sizes, scales_h=0.0, scales_w=0.0)
    np.testing.assert_allclose(to_x, np.einsum("ncbe,bh,ew->nchw", by, *weights[1:]))


def test_samples_of_an_image_and_their_gradient_are_bilinear() -> None:
    x, by = _normal((1, 2, 4, 5), (1, 2, 3, 2))
    places = np.random.default_rng(1).uniform(-0.6, 0.6, (1, 3, 2, 2))
    modes = 'interpolation_mode:string="bilinear" padding_mode:string="zeros"'
    spec = operator(
        "GridSample",
        "x grid",
        "y",
        f"{modes} align_corners:bool=false channel_last:bool=false scheduler_mode:int=1",
    )
    attrs = {"interpolation_mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
    more = {"scheduler_mode": 1}
    (y,) = _given(spec, x, places, **attrs, channel_last=False, **more)
    (last,) = _given(spec, np.moveaxis(x, 1, -1), places, **attrs, channel_last=True, **more)
    np.testing.assert_array_equal(last, y)
    backward = operator(
        "GridSampler2DGrad", "grad x grid", "dx dgrid", f"{modes} align_corners:bool=false"
    )
    to_x, _ = _given(backward, by, x, places, **attrs)
    expected, expected_to_x = np.zeros_like(y), np.zeros_like(x)
    for h, w in np.ndindex(3, 2):
        column = ((places[0, h, w, 0] + 1) * 5 - 1) / 2
        row = ((places[0, h, w, 1] + 1) * 4 - 1) / 2
        left, top = int(np.floor(column)), int(np.floor(row))
        for i, j in np.ndindex(2, 2):
            weight = (1 - abs(row - top - i)) * (1 - abs(column - left - j))
            expected[0, :, h, w] += weight * x[0, :, top + i, left + j]
            expected_to_x[0, :, top + i, left + j] += weight * by[0, :, h, w]
    np.testing.assert_allclose(y, expected)
    np.testing.assert_allclose(to_x, expected_to_x)


RESIZING = sorted(
    name
    for name, rows in OF_OPERATORS.items()
    if any(row.function.__module__ == resizing.__name__ for row in rows)
)


@pytest.mark.parametrize("name", RESIZING)
def test_each_has_cases_that_its_reference_takes(name: str) -> None:
    inputs, outputs, attrs = {
        "grid_sample": (
            "x grid",
            "y",
            'interpolation_mode:string="bilinear" padding_mode:string="zeros"'
            " align_corners:bool=false channel_last:bool=false",
        ),
        "grid_sampler2_d_grad": (
            "grad x grid",
            "dx dgrid",
            'interpolation_mode:string="bilinear" padding_mode:string="zeros"'
            " align_corners:bool=false",
        ),
        "grid_sampler3_d_grad": (
            "grad x grid",
            "dx dgrid",
            'interpolation_mode:string="bilinear" padding_mode:string="zeros"'
            " align_corners:bool=false",
        ),
        "upsample_bilinear2d": (
            "x size:int32",
            "y",
            "align_corners:bool=false scales:list_float=[]",
        ),
        "upsample_bicubic2d_grad": ("grad_output", "y", f"align_corners:bool=false {_HW}"),
        "upsample_linear1d": ("x size:int32", "y", "align_corners:bool=false scale:float=0.0"),
        "upsample_nearest": ("x", "y", f"output_size:list_int {_HW} exact_mode:bool=false"),
    }.get(name, _plain(name))
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    solid = {f"grid_sampler{n}_d_grad": f"GridSampler{n}DGrad" for n in (2, 3)}
    op = solid.get(name, words.replace("Aa", "AA"))
    spec = operator(op, inputs, outputs, attrs)
    found = find_by_name(spec)
    assert found is not None, name
    cases = library_cases(spec, found.expression, found=found)
    assert len({tuple(case.shapes) for case in cases}) >= 3


def _plain(name: str) -> tuple[str, str, str]:
    is_gradient = name.endswith(("_grad", "_backward"))
    is_solid = "3d" in name or "trilinear" in name
    scales = _DHW if is_solid else _HW
    if name == "resize_upsample_trilinear":
        scales = f"scales_d:float=0.0 {_HW}"
    if is_gradient and is_solid and "nearest" in name:
        scales = "scales:list_float=[0.0,0.0,0.0]"
    corners = "" if "nearest" in name else " align_corners:bool=false"
    sizes = _SIZES if is_gradient else "output_size:list_int"
    inputs = "grad_output" if is_gradient else "x" if "nearest" in name else "input"
    return inputs, "out", f"{sizes}{corners} {scales}"


def test_the_gradient_of_a_cubic_image_is_of_the_image_that_its_scales_say() -> None:
    (by,) = _normal((1, 2, 8, 3))
    attrs = "align_corners:bool=false scales_h:float=0.0 scales_w:float=0.0"
    spec = operator("UpsampleBicubic2dGrad", "grad_output", "y", attrs)
    (y,) = _given(spec, by, align_corners=False, scales_h=2.0, scales_w=0.0)
    assert y.shape == (1, 2, 4, 3)
    # Weights of each place sum up to 1, so that nothing of the gradient is lost.
    np.testing.assert_allclose(y.sum((2, 3)), by.sum((2, 3)))
