"""The article's programs: what NumPy gives for the text, and mistakes at their line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + len(shape)).normal(size=shape).astype(np.float32)


def line_of(module: ModuleType, text: str, nth: int = 0) -> int:
    assert module.__file__ is not None
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if text in line]
    return found[nth]


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param(
            "residual_block",
            [array(32, 16), array(16, 16, seed=1), array(16)],
            marks=pytest.mark.slow,
        ),
        ("fused_layer_norm_relu", [array(6, 40), array(40), array(40, seed=3)]),
        pytest.param(
            "memory_efficient_attention",
            [array(1100, 16), array(24, 16, seed=1), array(24, 16)],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "unrolled_convolution",
            [array(1, 2, 3, 3), array(5, 2, 1, 1, seed=1), array(5)],
            marks=pytest.mark.slow,
        ),
        ("custom_linear", [array(8, 16), array(4, 16, seed=1), array(4)]),
    ],
)
def test_a_program_returns_what_numpy_gives_for_its_text(
    article: ModuleType, in_numpy: SimpleNamespace, name: str, arguments: list[Any]
) -> None:
    close(getattr(article, name)(*arguments), getattr(in_numpy.article, name)(*arguments))


@pytest.mark.slow
def test_tiles_are_written_through_the_argument_and_returned(article: ModuleType) -> None:
    a, b, c = array(128, 64), array(64, 128, seed=1), np.zeros((128, 128), np.float32)
    returned = article.matrix_multiply(a, b, c)
    assert returned is c
    close(c, a @ b)


def test_a_tail_smaller_than_a_tile_is_an_error_at_the_line_that_adds(
    article: ModuleType,
) -> None:
    a, b, c = array(100, 192), array(192, 80), np.zeros((100, 80), np.float32)
    with pytest.raises(GraphError, match=r"allocate it as small, min\(TILE") as caught:
        article.matrix_multiply(a, b, c)
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(article, "C_tile += ")
    assert caught.value.location.file == article.__file__
    assert not c.any()


@pytest.mark.slow
def test_a_tail_is_multiplied_where_its_accumulator_is_as_small(corrected: ModuleType) -> None:
    a, b, c = array(100, 192), array(192, 80), np.zeros((100, 80), np.float32)
    corrected.matrix_multiply(a, b, c)
    close(c, a @ b)


def test_names_that_the_text_does_not_define_are_errors_at_the_line_that_calls(
    article: ModuleType,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pypto.PyptoWarning)
        with pytest.raises(GraphError, match='"layer_norm" is not defined') as caught:
            article.transformer_block(*transformer_arguments())
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(article, "layer_norm(x, norm_weight)")


@pytest.mark.slow
def test_attention_over_the_heads_is_computed_as_written_and_warned_of(
    article: ModuleType, in_numpy: SimpleNamespace
) -> None:
    x, weight, _, _ = transformer_arguments()
    with pytest.warns(pypto.PyptoWarning, match="attention over the 8 heads") as caught:
        result = article.multi_head_attention(x, weight)
    assert caught[0].lineno == line_of(article, "pypto.softmax(scores", 0)
    close(result, in_numpy.article.multi_head_attention(x, weight))


@pytest.mark.slow
def test_corrected_attention_attends_to_positions_without_a_warning(
    corrected: ModuleType, in_numpy: SimpleNamespace
) -> None:
    arguments = transformer_arguments()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = corrected.transformer_block(*arguments)
    close(result, in_numpy.corrected.transformer_block(*arguments))


@pytest.mark.slow
def test_the_pipeline_runs_every_stage_once_its_block_is_defined(
    article: ModuleType,
    corrected: ModuleType,
    in_numpy: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, attn, ffn, norm = transformer_arguments()
    stages = [
        {"attn": attn, "ffn": ffn, "norm": norm},
        {"attn": attn, "ffn": ffn, "norm": 2 * norm},
    ]
    monkeypatch.setattr(article, "transformer_block", corrected.transformer_block)
    monkeypatch.setattr(in_numpy.article, "transformer_block", in_numpy.corrected.transformer_block)
    expected = in_numpy.article.pipelined_transformer(x, stages, num_stages=2)
    close(article.pipelined_transformer(x, stages, num_stages=2), expected)


@pytest.mark.slow
def test_a_read_behind_the_input_is_an_error_at_its_line(
    article: ModuleType, corrected: ModuleType
) -> None:
    x, kernel, bias = array(1, 2, 4, 4), array(4, 2, 3, 3, seed=1), array(4)
    with pytest.raises(GraphError, match="index 4 is outside of axis 3, which has 4") as caught:
        article.unrolled_convolution(x, kernel, bias)
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(article, "val = input[")
    padded = np.pad(x, ((0, 0), (0, 0), (0, 2), (0, 2)))
    out = np.zeros((1, 4, 4, 4), np.float32)
    corrected.convolution(padded, kernel, bias, out)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    close(out, np.einsum("bihwkl,oikl->bohw", windows, kernel) + bias[:, None, None])


@pytest.mark.torch
def test_a_backward_that_is_pass_is_warned_of_at_its_line(
    article: ModuleType, load_example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setitem(sys.modules, "article", article)
    module = load_example("article_torch", pypto)
    layer = module.LinearLayer(16, 8)
    x = torch.randn(4, 16)
    with pytest.warns(pypto.PyptoWarning, match="PyPTOLinear.backward returns nothing") as caught:
        result = layer(x)
    assert caught[0].lineno in (
        line_of(module, "def backward"),
        line_of(module, "def backward") - 1,
    )
    close(result.detach().numpy(), (x @ layer.weight.T + layer.bias).detach().numpy())


def test_one_trace_serves_calls_of_equal_shapes(article: ModuleType) -> None:
    linear = article.custom_linear
    linear(array(8, 16), array(4, 16), array(4))
    first = linear.last
    linear(array(8, 16, seed=5), array(4, 16), array(4))
    assert linear.last is first
    linear(array(3, 16), array(4, 16), array(4))
    assert linear.last is not first


def test_element_wise_programs_run_as_kernels(article: ModuleType) -> None:
    article.fused_layer_norm_relu(array(6, 40), array(40), array(40))
    assert article.fused_layer_norm_relu.last.runs_in == "kernels"
    assert article.fused_layer_norm_relu.last.reason == ""


def transformer_arguments() -> tuple[Any, Any, Any, Any]:
    attn = {
        name: array(32, 32, seed=n) / 6 for n, name in enumerate(("q_proj", "k_proj", "v_proj"))
    }
    ffn = {"up": array(32, 64) / 6, "down": array(64, 32) / 8}
    return array(2, 5, 32), attn, ffn, array(32)
