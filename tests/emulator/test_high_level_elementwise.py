"""The element-wise functions of the high-level library against NumPy in float64."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

Function = Callable[[np.ndarray], np.ndarray]


def numbers(value: int) -> bytes:
    return np.uint32(value).tobytes()


def each(function: Callable[[float], float]) -> Function:
    return np.vectorize(function, otypes=[np.float64])


def swish(x: np.ndarray, beta: float = 1.0) -> np.ndarray:
    return x / (1 + np.exp(-beta * x))


def around(*limits: float) -> np.ndarray:
    """Values from 0 to each limit, densely and on a logarithmic scale, of both signs."""
    parts = [np.linspace(-top, top, 300) for top in limits]
    parts += [np.geomspace(1e-30, limits[-1], 200), -np.geomspace(1e-30, limits[-1], 200)]
    return np.concatenate(parts)


ANYTHING = around(4.0, 60.0, 3e38)
ANGLES = np.concatenate(
    [around(8.0, 65504.0), np.pi / 2 * np.arange(-60, 60), [20000.0 * np.pi, 41701 * np.pi / 2]]
)
BELOW_ONE = np.concatenate([around(1.0), 1 - np.geomspace(1e-7, 0.5, 50)])
FROM_ONE = np.concatenate([1 + np.geomspace(1e-7, 1, 100), np.geomspace(1, 1e30, 100), [1.0]])

# Each function: arguments, the reference, and how far a float may lie from it: in units of its last place, and in
# absolute terms where the result crosses zero.
UNARY: dict[str, tuple[np.ndarray, Function, float, float]] = {
    "Sin": (ANGLES, np.sin, 2, 2e-9),
    "Cos": (ANGLES, np.cos, 2, 2e-9),
    "Tan": (ANGLES, np.tan, 4, 2e-9),
    "Asin": (BELOW_ONE, np.arcsin, 3, 0),
    "Acos": (BELOW_ONE, np.arccos, 3, 0),
    "Atan": (ANYTHING, np.arctan, 3, 0),
    "Sinh": (around(2.0, 89.3), np.sinh, 5, 0),
    "Cosh": (around(2.0, 89.3), np.cosh, 5, 0),
    "Tanh": (ANYTHING, np.tanh, 4, 0),
    "Asinh": (around(4.0, 1e30), np.arcsinh, 4, 0),
    "Acosh": (FROM_ONE, np.arccosh, 4, 0),
    "Atanh": (BELOW_ONE[np.abs(BELOW_ONE) < 1], np.arctanh, 4, 0),
    "Erf": (ANYTHING, each(math.erf), 4, 0),
    "Erfc": (around(4.0, 9.0), each(math.erfc), 8, 0),
    "Frac": (around(4.0, 1e6), lambda x: x - np.trunc(x), 0, 0),
    "Silu": (around(4.0, 80.0), swish, 4, 0),
}
# Where infinities and NaN lead. The library promises nothing for Sin, Cos, Tan of infinity: NaN.
SPECIAL = {
    "Atan": [np.pi / 2, -np.pi / 2],
    "Sinh": [np.inf, -np.inf],
    "Cosh": [np.inf, np.inf],
    "Tanh": [1, -1],
    "Asinh": [np.inf, -np.inf],
    "Acosh": [np.inf, np.nan],
    "Erf": [1, -1],
    "Erfc": [0, 2],
}
CALLS = {
    **{name: f"{name}(c, a, space, count);" for name in UNARY},
    "Silu": "Silu(c, a, count);",
    "Taylor": "Exp<T, 12, false>(c, a, space, count);",
    "Swish": "Swish(c, a, count, static_cast<T>(-1.5f));",
    "ClampMax": "ClampMax(c, a, space, static_cast<T>(2.0f), count);",
    "ClampMin": "ClampMin<T, false>(c, a, static_cast<T>(2.0f), count);",
    "Fmod": "Fmod(c, a, b, space, count);",
    "GeGLU": "GeGLU(c, a, b, count);",
    "ReGlu": "ReGlu(c, a, b, space, count);",
    "SwiGLU": "SwiGLU(c, a, b, 0.5f, space, count);",
    "Axpy": "Adds(c, b, (T)0, count); PipeBarrier<PIPE_V>(); Axpy(c, a, (T)0.3f, space, count);",
    "Power": "Power(c, a, b, space, count);",
    "PowerOfTensor": "Power<T, false>(c, a, static_cast<T>(3.0f), space, count);",
    "PowerOfScalar": "Power(c, static_cast<T>(1.5f), b, count);",
    "InPlace": "Tanh(a, a, space, count); Adds(c, a, (T)0, count);",
}
KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t which, uint32_t count,
                                             uint32_t space_bytes) {
  using T = %(type)s;
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 81920);
  GlobalTensor<T> first, second, out;
  first.SetGlobalBuffer((__gm__ T*)x, count);
  second.SetGlobalBuffer((__gm__ T*)y, count);
  out.SetGlobalBuffer((__gm__ T*)z, count);
  const LocalTensor<T> a = memory.GetWithOffset<T>(count, 0), b = memory.GetWithOffset<T>(count, 16384);
  LocalTensor<T> c = memory.GetWithOffset<T>(count, 32768);
  LocalTensor<uint8_t> space = memory.GetWithOffset<uint8_t>(space_bytes, 49152);
  const DataCopyExtParams all = {1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
  DataCopyPad(a, first, all, DataCopyPadExtParams<T>{false, 0, 0, 0});
  DataCopyPad(b, second, all, DataCopyPadExtParams<T>{false, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  switch (which) {
%(cases)s
  }
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(out, c, all);
}
"""
TYPES = {"half": np.float16, "float": np.float32}


class Kernel:
    """All functions for one type, chosen at launch."""

    def __init__(self, run: Callable[..., object], dtype: type[np.floating]) -> None:
        self._run = run
        self.dtype = dtype

    def __call__(
        self, name: str, x: np.ndarray, y: np.ndarray | None = None, space: int = 16384
    ) -> np.ndarray:
        x = x.astype(self.dtype)
        y = np.zeros_like(x) if y is None else y.astype(self.dtype)
        z = np.full_like(x, 77)
        self._run(x, y, z, numbers(list(CALLS).index(name)), numbers(x.size), numbers(space))
        return z


@pytest.fixture(scope="module", params=sorted(TYPES))
def kernel(request: pytest.FixtureRequest, compile_kernel) -> Kernel:
    cases = [f"    case {i}: {{ {body} break; }}" for i, body in enumerate(CALLS.values())]
    values = {"type": request.param, "cases": "\n".join(cases)}
    return Kernel(compile_kernel(KERNEL % values), TYPES[request.param])


def ulps(found: np.ndarray, expected: np.ndarray, beside: float) -> np.ndarray:
    """Distances in units in the last place of found's type, `beside` taken off in absolute terms."""
    unit = np.spacing(np.abs(expected).astype(found.dtype)).astype(np.float64)
    distance = np.abs(found.astype(np.float64) - expected) - beside
    return np.where(np.isfinite(unit), np.maximum(distance, 0) / unit, 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_tensor_is_as_accurate_as_its_row_says(kernel: Kernel, name: str) -> None:
    arguments, reference, limit, beside = UNARY[name]
    with np.errstate(all="ignore"):
        x = arguments.astype(kernel.dtype)
        x = x[np.isfinite(x) & (np.abs(x) <= np.abs(arguments).max())]
        if name == "Acosh":
            x = x[x >= 1]
        if name == "Atanh":
            x = x[np.abs(x) < 1]
        expected = reference(x.astype(np.float64))
        # Half is rounded once: half a unit, and a little for a float that lies near the middle.
        limit = limit if kernel.dtype == np.float32 else 0.51
        distance = ulps(kernel(name, x), expected, beside)
    worst = int(np.argmax(distance))
    assert distance[worst] <= limit, f"{name}({x[worst]!r}): {distance[worst]:.1f} ulp"


@pytest.mark.parametrize("name", UNARY)
def test_zero_infinities_and_nan(kernel: Kernel, name: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    found = kernel(name, x).astype(np.float64)
    assert np.isnan(found[4])
    if name in SPECIAL:
        np.testing.assert_allclose(found[2:4], SPECIAL[name], rtol=1e-3)
    if name != "Acosh":
        np.testing.assert_allclose(found[:2], UNARY[name][1](np.zeros(2)), atol=1e-3)


def random(low: float, high: float, seed: int, count: int = 600) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count)


def test_functions_of_two_tensors(kernel: Kernel) -> None:
    x = random(-4, 4, 1).astype(kernel.dtype).astype(np.float64)
    y = random(0.5, 3, 2).astype(kernel.dtype).astype(np.float64)
    cube = y**3 + 22.363860002236 * y
    expected = {
        "Swish": x / (1 + np.exp(1.5 * x)),
        "ClampMax": np.minimum(x, 2),
        "ClampMin": np.maximum(x, 2),
        "Fmod": np.fmod(x, y),
        "GeGLU": x * y / (1 + np.exp(-0.0713548162726 * cube)),
        "ReGlu": x * np.maximum(y, 0),
        "SwiGLU": x * swish(y, 0.5),
        "Axpy": y + float(kernel.dtype(0.3)) * x,
        "Taylor": np.exp(x),
        "InPlace": np.tanh(x),
        "PowerOfTensor": x**3,
        "PowerOfScalar": 1.5**y,
    }
    tolerance = 2e-6 if kernel.dtype == np.float32 else 6e-4
    for name, values in expected.items():
        np.testing.assert_allclose(
            kernel(name, x, y), values, rtol=tolerance, atol=tolerance, err_msg=name
        )


def test_a_short_taylor_series_is_as_wrong_as_documented(compile_kernel) -> None:
    call = {"type": "float", "cases": "default: Exp<T, 2, false>(c, a, space, count);"}
    x = random(-3, 3, 5).astype(np.float32)
    z = np.zeros_like(x)
    compile_kernel(KERNEL % call)(x, x, z, numbers(0), numbers(x.size), numbers(4096))
    rest = x - np.floor(x)
    np.testing.assert_allclose(z, np.exp(np.floor(x)) * (1 + rest + rest**2 / 2), rtol=1e-6)


def test_power_of_all_signs(kernel: Kernel) -> None:
    base = np.array([0, 0, 0, 2, -2, -2, -2, 1, 7, 1.25, np.inf, 9, -3, -3])
    exponent = np.array([0, 2, -1, 10, 3, 2, 0.5, 55, 1, -3, 2, 0.5, -3, -2])
    with np.errstate(all="ignore"):
        expected = base**exponent
    found = kernel("Power", base, exponent)
    tolerance = 1e-6 if kernel.dtype == np.float32 else 1e-3
    np.testing.assert_allclose(found, expected, rtol=tolerance)


def test_parts_and_a_temporary_space_that_is_too_small(kernel: Kernel) -> None:
    x = random(-4, 4, 3)
    whole = kernel("Tanh", x)
    np.testing.assert_array_equal(kernel("Tanh", x, space=1280), whole)
    with pytest.raises(KernelFault, match="smaller than one repeat"):
        kernel("Tanh", x, space=768)


@pytest.fixture(scope="module")
def integers(compile_kernel) -> Callable[..., object]:
    cases = [
        "Power(c, a, b, space, count);",
        "Power(c, a, (T)5, count);",
        "Power<T, false>(c, (T)-3, b, space, count);",
    ]
    text = "\n".join(f"case {i}: {{ {body} break; }}" for i, body in enumerate(cases))
    return compile_kernel(KERNEL % {"type": "int32_t", "cases": text})


def test_integer_powers_wrap_around(integers: Callable[..., object]) -> None:
    generator = np.random.default_rng(4)
    x = generator.integers(-9, 10, 300).astype(np.int32)
    y = generator.integers(0, 12, 300).astype(np.int32)
    for which, expected in enumerate([x**y, x**5, np.full_like(x, -3) ** y]):
        z = np.zeros_like(x)
        integers(x, y, z, numbers(which), numbers(x.size), numbers(8192))
        np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_xor(compile_kernel, dtype: type[np.integer]) -> None:
    kind = {np.int16: "int16_t", np.uint16: "uint16_t"}[dtype]
    generator = np.random.default_rng(4)
    x = generator.integers(0, 60000, 300).astype(dtype)
    y = generator.integers(0, 60000, 300).astype(dtype)
    z = np.zeros_like(x)
    cases = "case 1: Xor(c, a, b[16], space); break; default: Xor(c, a, b, space, count);"
    run = compile_kernel(KERNEL % {"type": kind, "cases": cases})
    run(x, y, z, numbers(0), numbers(x.size), numbers(256))
    np.testing.assert_array_equal(z, x ^ y)
    with pytest.raises(KernelFault, match="both sources have the same number of elements"):
        run(x, y, z, numbers(1), numbers(x.size), numbers(256))


# Each with the element-wise call above that takes the space.
SPACED = {
    **{name: name for name in [*UNARY, "Fmod", "ReGlu", "SwiGLU", "Axpy", "Power"]},
    "Exp": "Taylor",
}
SPACED.pop("Silu")
PROGRAM = """
#include <cstdio>

#include "tiling/tiling_api.h"

using namespace AscendC;

int main() {
  const TensorShape shape({20, 30});
  uint32_t most = 0, least = 0, factor = 0, extra = 0;
  for (const uint32_t bytes : {2u, 4u}) {
%s
  }
}
"""
LINE = """    Get{0}MaxMinTmpSize({1});
    Get{0}TmpBufferFactorSize({2}bytes, factor, extra);
    std::printf("{0} %u %u %u %u %u\\n", bytes, most, least, factor, extra);"""


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], list[int]]:
    """What the host says of each function and element size: most, least, factor, extra bytes."""
    folder: Path = tmp_path_factory.mktemp("spaces")
    # The pages of two functions have other parameters.
    sizes = {
        "Power": "shape, shape, false, bytes, false, most, least",
        "SwiGLU": "shape, bytes, most, least, false",
    }
    lines = [
        LINE.format(
            name,
            sizes.get(name, "shape, bytes, false, most, least"),
            "true, true, false, " if name == "Power" else "",
        )
        for name in SPACED
    ]
    (folder / "spaces.cpp").write_text(PROGRAM % "\n".join(lines))
    compiler = shutil.which("c++") or "g++"
    command = [compiler, "-std=c++17", "-isystem", str(emulator.include_dir()), "spaces.cpp"]
    command += ["-o", "spaces", "-L", str(emulator.library_path().parent), "-lopkit_emulator"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    library_path = {"LD_LIBRARY_PATH": str(emulator.library_path().parent)}
    ran = subprocess.run(
        [folder / "spaces"], env=library_path, capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in ran.stdout.splitlines()]
    return {(name, int(size)): [int(word) for word in words] for name, size, *words in rows}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SPACED)
def test_the_least_space_that_the_host_names_is_enough_and_no_more(
    kernel: Kernel, spaces: dict[tuple[str, int], list[int]], name: str
) -> None:
    most, least, factor, extra = spaces[name, kernel.dtype().itemsize]
    x = random(1.1 if name == "Acosh" else 0.1, 1.2 if name == "Acosh" else 0.9, 6)
    whole = kernel(SPACED[name], x, x)
    np.testing.assert_array_equal(kernel(SPACED[name], x, x, least), whole)
    np.testing.assert_array_equal(kernel(SPACED[name], x, x, most), whole)
    assert most == -(-x.size // 64) * least
    assert factor * 64 * kernel.dtype().itemsize + extra == least
    if name != "Power":  # the host reckons with a scalar, which takes a tensor more
        with pytest.raises(KernelFault, match="temporary space"):
            kernel(SPACED[name], x, x, least - 32)
