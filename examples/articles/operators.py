"""The operators of article 001: each as a first kernel and as a fast one, with what both must compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from opkit import runtime, toolchain

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Operator:
    """One row of the article's table."""

    name: str
    size: str
    source: str
    """The file of its kernels."""
    kernels: dict[str, int]
    """By name: blocks of a launch; the naive one first."""
    article_gain: float
    """How much faster the article's second version is."""
    make: Callable[[np.random.Generator], list[np.ndarray]]
    """Inputs, then the output."""
    reference: Callable[..., np.ndarray]
    """The output in float64."""
    numbers: tuple[np.generic, ...] = ()
    """Arguments behind the arrays."""

    def run(self, kernel: str, arrays: list[np.ndarray]) -> np.ndarray:
        """Launch one of the kernels and return the output, which is written in place."""
        image = toolchain.compile_kernel(HERE / self.source)
        launched = runtime.Kernel(image, kernel)
        launched.launch([*arrays, *self.numbers], self.kernels[kernel])
        return arrays[-1]


def _halves(generator: np.random.Generator, *shape: int) -> np.ndarray:
    return generator.normal(size=shape).astype(np.float16)


def _tensors(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[np.ndarray]]:
    def make(generator: np.random.Generator) -> list[np.ndarray]:
        inputs = [_halves(generator, *shape) for shape in shapes[:-1]]
        return [*inputs, np.zeros(shapes[-1], np.float16)]

    return make


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _convolve(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    result: np.ndarray = np.einsum("chwij,ocij->ohw", windows, w, optimize=True)
    return result


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return each row without its mean, of deviation one, weighted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return each row over the root of its mean square, weighted."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * weight


OPERATORS = (
    Operator(
        name="VectorAdd",
        size="1 Mi elements",
        source="vector_add.cpp",
        kernels={"vector_add_naive": 8, "vector_add_optimised": 48},
        article_gain=3.0,
        make=_tensors((1 << 20,), (1 << 20,), (1 << 20,)),
        reference=np.add,
        numbers=(np.uint32(1 << 20),),
    ),
    Operator(
        name="MatMul",
        size="2048 x 2048",
        source="matmul.cpp",
        kernels={"matmul_naive": 24, "matmul_optimised": 24},
        article_gain=3.0,
        make=_tensors((2048, 2048), (2048, 2048), (2048, 2048)),
        reference=np.matmul,
        numbers=(np.uint32(2048),),
    ),
    Operator(
        name="Conv2D",
        size="1 x 3 x 224 x 224",
        source="conv2d.cpp",
        kernels={"conv2d_naive": 48, "conv2d_optimised": 48},
        article_gain=3.2,
        make=_tensors((3, 224, 224), (64, 3, 3, 3), (64, 224, 224)),
        reference=_convolve,
    ),
    Operator(
        name="LayerNorm",
        size="1 x 512 x 1024",
        source="norms.cpp",
        kernels={"layer_norm_naive": 48, "layer_norm_optimised": 48},
        article_gain=2.5,
        make=_tensors((512, 1024), (1024,), (1024,), (512, 1024)),
        reference=layer_norm,
        numbers=(np.uint32(512), np.uint32(1024), np.float32(1e-5)),
    ),
    Operator(
        name="GELU",
        size="1 x 4096",
        source="gelu.cpp",
        kernels={"gelu_naive": 1, "gelu_optimised": 4},
        article_gain=3.0,
        make=_tensors((4096,), (4096,)),
        reference=_gelu,
        numbers=(np.uint32(4096),),
    ),
)


def rms_norm_operator(rows: int, width: int = 4096) -> Operator:
    """Return the RMSNorm of Llama-7B, whose hidden size is 4096, for so many tokens."""
    return Operator(
        name="RMSNorm",
        size=f"{rows} x {width}",
        source="norms.cpp",
        kernels={"rms_norm_rows": min(48, rows), "rms_norm_vector": min(48, rows)},
        article_gain=48 / 35,
        make=_tensors((rows, width), (width,), (rows, width)),
        reference=rms_norm,
        numbers=(np.uint32(rows), np.uint32(width), np.float32(1e-6)),
    )


rms_norm_of_one_token = partial(rms_norm_operator, 1)
