"""References of operators on points and feature maps, against sums in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.testing.opdef_cases import library_cases
from opkit.testing.references.by_name import find_by_name
from tests.testing.test_by_name import _given, _normal, operator

pytestmark = pytest.mark.torch


def test_the_gradient_of_a_distance_goes_to_both_of_its_points() -> None:
    first, second, by_first, by_second = _normal((2, 3, 2), (2, 3, 2), (2, 3), (2, 3))
    near, back = np.array([[2, 0, 2], [1, 1, 0]]), np.array([[1, 1, 0], [2, 0, 0]])
    spec = operator(
        "ChamferDistanceGrad",
        "xyz1 xyz2 idx1:int32 idx2:int32 grad_dist1 grad_dist2",
        "grad_xyz1 grad_xyz2",
    )
    given = _given(spec, first, second, near, back, by_first, by_second)
    expected = np.zeros_like(first), np.zeros_like(second)
    for b, i in np.ndindex(2, 3):
        apart = 2 * by_first[b, i] * (first[b, i] - second[b, near[b, i]])
        expected[0][b, i] += apart
        expected[1][b, near[b, i]] -= apart
        apart = 2 * by_second[b, i] * (second[b, i] - first[b, back[b, i]])
        expected[1][b, i] += apart
        expected[0][b, back[b, i]] -= apart
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other)
    found = find_by_name(spec)
    assert found is not None
    assert library_cases(spec, found.expression, found=found)


def test_the_gradient_of_attention_at_places_of_maps_is_bilinear() -> None:
    maps = np.array([[3, 4], [2, 2]])
    value, weights, by = _normal((1, 16, 2, 8), (1, 3, 2, 2, 1), (1, 3, 16))
    places = np.random.default_rng(1).uniform(0.3, 0.7, (1, 3, 2, 2, 1, 2))
    spec = operator(
        "MultiScaleDeformableAttentionGrad",
        "value value_spatial_shapes:int32 value_level_start_index:int32 sampling_locations"
        " attention_weights grad_output",
        "grad_value grad_sampling_locations grad_attention_weights",
    )
    # Queries come last in what the operator takes.
    turned = places.transpose(0, 2, 3, 4, 5, 1), weights.transpose(0, 2, 3, 4, 1)
    to_value, to_places, to_weights = _given(spec, value, maps, np.array([0, 12]), *turned, by)
    expected = np.zeros_like(value), np.zeros_like(places), np.zeros_like(weights)
    for q, head, level in np.ndindex(3, 2, 2):
        height, width = maps[level]
        levels = value[0, (0, 12)[level] :][: height * width, head].reshape(height, width, 8)
        out = by[0, q, 8 * head : 8 * head + 8]
        x, y = places[0, q, head, level, 0] * (width, height) - 0.5
        left, top = int(np.floor(x)), int(np.floor(y))
        weight = weights[0, q, head, level, 0]
        for row, column in np.ndindex(2, 2):
            across = x - left if column else 1 - (x - left)
            down = y - top if row else 1 - (y - top)
            corner = levels[top + row, left + column]
            place = (0, 12)[level] + (top + row) * width + left + column
            expected[0][0, place, head] += weight * across * down * out
            expected[2][0, q, head, level, 0] += across * down * (corner @ out)
            signs = np.array([(2 * column - 1) * down * width, (2 * row - 1) * across * height])
            expected[1][0, q, head, level, 0] += weight * (corner @ out) * signs
    np.testing.assert_allclose(to_value, expected[0], atol=1e-12)
    np.testing.assert_allclose(to_places.transpose(0, 5, 1, 2, 3, 4), expected[1], atol=1e-12)
    np.testing.assert_allclose(to_weights.transpose(0, 4, 1, 2, 3), expected[2], atol=1e-12)


def test_boxes_share_what_lies_in_both() -> None:
    boxes = np.array([[0.0, 0, 2, 2], [4, 4, 5, 6]])
    others = np.array([[1.0, 1, 3, 3], [0, 0, 1, 1], [4, 5, 6, 6]])
    spec = operator(
        "IouV2", "bboxes gtboxes", "overlap", 'mode:string="iou" eps:float=1.0 aligned:bool=false'
    )
    (shares,) = _given(spec, boxes, others, mode="iou", eps=0.0, aligned=False)
    np.testing.assert_allclose(shares, [[1 / 7, 0], [1 / 4, 0], [0, 1 / 3]])
    (shares,) = _given(spec, boxes.T, others[:2].T, mode="iof", eps=0.0, aligned=True)
    np.testing.assert_allclose(shares, [[1 / 4], [0]])
    found = find_by_name(spec)
    assert found is not None and library_cases(spec, found.expression, found=found)


def test_points_are_taken_of_their_own_batch() -> None:
    (features,) = _normal((5, 2))
    indices = np.array([[0, 1, 1], [2, 0, 1], [1, 1, 0]])
    spec = operator(
        "StackGroupPoints",
        "features features_batch_cnt:int32 indices:int32 indices_batch_cnt:int32",
    )
    (taken,) = _given(spec, features, np.array([2, 3]), indices, np.array([1, 2]))
    begins = [0, 2, 2]
    for row, column, sample in np.ndindex(3, 2, 3):
        value = features[begins[row] + indices[row, sample], column]
        assert taken[row, column, sample] == value


def test_a_gradient_goes_to_its_three_points() -> None:
    by, weight = _normal((1, 2, 4), (1, 4, 3))
    places = np.array([[[0, 1, 2], [2, 2, 0], [1, 0, 1], [2, 1, 0]]])
    spec = operator("ThreeInterpolateBackward", "grad_x idx:int32 weight", "grad_y", "m:int")
    (sums,) = _given(spec, by, places, weight, m=5)
    expected = np.zeros((1, 2, 5))
    for channel, count, point in np.ndindex(2, 4, 3):
        share = by[0, channel, count] * weight[0, count, point]
        expected[0, channel, places[0, count, point]] += share
    np.testing.assert_allclose(sums, expected)
