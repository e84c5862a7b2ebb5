"""`pypto.conv`, held against torch."""

from __future__ import annotations

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError

X = np.random.default_rng(3).normal(size=(2, 4, 7, 6)).astype(np.float32)
W = np.random.default_rng(4).normal(size=(6, 2, 3, 2)).astype(np.float32)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 2])
def test_a_convolution_is_torchs(rank: int) -> None:
    import torch

    x, w = (X, W) if rank == 2 else (X[:, :, 0], W[:, :, 0])
    bias = np.arange(6, dtype=np.float32)

    @pypto.jit
    def program(x, w, bias):
        further = {"bias_tensor": bias, "relu_type": pypto.ConvReLuType.RELU}
        return pypto.conv(
            *(x, w, pypto.DT_FP32, [2] * rank, [1, 1] * rank, [1] * rank),
            groups=2,
            extend_params=further,
        )

    function = torch.nn.functional.conv2d if rank == 2 else torch.nn.functional.conv1d
    tensors = [torch.from_numpy(each.copy()) for each in (x, w, bias)]
    expected = function(*tensors, stride=2, padding=1, groups=2).relu().numpy()
    np.testing.assert_allclose(program(x, w, bias), expected, rtol=1e-4, atol=1e-5)


def test_what_no_convolution_is_there_for_is_said_at_its_line() -> None:
    with pytest.raises(GraphError, match="opkit has no transposed") as error:
        pypto.jit(
            lambda x, w: pypto.conv(
                x, w, pypto.DT_FP32, [1, 1], [0] * 4, [1, 1], groups=2, transposed=True
            )
        )(X, W)
    assert error.value.location is not None and error.value.location.file == __file__
    with pytest.raises(GraphError, match="2 paddings, expected 4"):
        pypto.jit(lambda x, w: pypto.conv(x, w, pypto.DT_FP32, [1, 1], [0, 0], [1, 1]))(X, W)
