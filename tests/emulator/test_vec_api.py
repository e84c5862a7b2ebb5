"""Public vector templates in real kernels: call forms, operators, faults with the kernel's line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  GlobalTensor<%(type)s> in0, in1, out;
  in0.SetGlobalBuffer((__gm__ %(type)s*)x, 512);
  in1.SetGlobalBuffer((__gm__ %(type)s*)y, 512);
  out.SetGlobalBuffer((__gm__ %(type)s*)z, 512);
  LocalTensor<%(type)s> a(TPosition::VECIN, 0, 512), b(TPosition::VECIN, 4096, 512);
  LocalTensor<%(type)s> c(TPosition::VECOUT, 8192, 512), work(TPosition::VECCALC, 12288, 512);
  LocalTensor<uint8_t> bits(TPosition::VECCALC, 16384, 256);
  uint64_t all[2] = {~0ull, ~0ull};
  DataCopy(a, in0, 512);
  DataCopy(b, in1, 512);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, 512);
}
"""


def run(compile_kernel, body: str, kind: str = "half") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kernel = compile_kernel(KERNEL % {"type": kind, "body": body})
    rng = np.random.default_rng(1)
    dtype = np.float16 if kind == "half" else np.float32
    x, y = (rng.normal(size=512).astype(dtype) for _ in range(2))
    z = np.zeros(512, dtype=dtype)
    kernel(x, y, z)
    return x, y, z


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "body",
    [
        "Add(c, a, b, 512);",
        "c = a + b;",
        "Add(c, a, b, 128, 4, {1, 1, 1, 8, 8, 8});",
        "Add(c, a, b, all, 4, {1, 1, 1, 8, 8, 8});",
        "SetMaskNorm(); SetVectorMask<half>(128); "
        "Add<half, false>(c, a, b, MASK_PLACEHOLDER, 4, {1, 1, 1, 8, 8, 8}); ResetMask();",
        "SetMaskCount(); SetVectorMask<half, MaskMode::COUNTER>(512); "
        "Add<half, false>(c, a, b, MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8}); SetMaskNorm();",
    ],
)
def test_every_call_form_of_an_instruction_adds(compile_kernel, body: str) -> None:
    x, y, z = run(compile_kernel, body)
    np.testing.assert_array_equal(z, x + y)


def test_a_comparison_operator_feeds_select(compile_kernel) -> None:
    x, y, z = run(
        compile_kernel,
        "bits = a < b; Select(c, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 512);",
    )
    np.testing.assert_array_equal(z, np.minimum(x, y))


def test_both_generations_of_reduction_names_agree(compile_kernel) -> None:
    x, _, z = run(
        compile_kernel,
        "Duplicate(c, 0.0f, 512); WholeReduceSum(c, a, 64, 8, 1, 1, 8);"
        "ReduceRepeat<ReduceType::SUM>(c[64], a, 64, 8, 1, 1, 8);"
        "ReduceSum(c[128], a, work, 512);",
        "float",
    )
    np.testing.assert_array_equal(z[:8], z[64:72])
    np.testing.assert_allclose(z[:8], x.reshape(8, 64).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(z[128], x.sum(), rtol=1e-5)


def test_a_fault_names_the_line_of_the_call_or_the_operator(compile_kernel) -> None:
    for body in ("Exp(c, a, 4096);", "c = a / work[8];"):
        kernel = compile_kernel(KERNEL % {"type": "half", "body": body})
        x = np.ones(512, dtype=np.float16)
        with pytest.raises(KernelFault) as caught:
            kernel(x, x, x.copy())
        lines = kernel.source.read_text().splitlines()
        assert caught.value.file == kernel.source
        assert lines[caught.value.line - 1].strip() == body


def test_a_type_that_the_chip_lacks_fails_to_compile_with_the_instructions_name(
    tmp_path: Path,
) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "kernel.cpp"
    source.write_text(
        '#include "kernel_operator.h"\n'
        "void f(AscendC::LocalTensor<int32_t> x) { AscendC::Exp(x, x, 8); }\n"
    )
    command = [
        compiler,
        "-std=c++17",
        "-fsyntax-only",
        "-I",
        str(emulator.include_dir()),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Exp: this data type is not supported on this chip; see `opkit isa Exp`" in done.stderr


LEFT = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECOUT, 0, 256), b(TPosition::VECCALC, 4096, 256);
  GlobalTensor<float> out;
  out.SetGlobalBuffer((__gm__ float*)y, 256);
  Duplicate(a, 0.0f, 256);
  PipeBarrier<PIPE_V>();
  %s
  PipeBarrier<PIPE_V>();
  Adds<float, false>(a, a, 1.0f, MASK_PLACEHOLDER, 2, {1, 1, 8, 8});
  PipeBarrier<PIPE_ALL>();
  SetMaskNorm();
  ResetMask();
  DataCopy(out, a, 256);
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("before", "counts"),
    [
        # A count is a counter of its own; behind it lies the default: all lanes of each repeat.
        ("SetMaskCount(); SetVectorMask<float>(0, 5); Duplicate(b, 1.0f, 9);", (64, 64)),
        ("SetVectorMask<float>(0, 3); Duplicate<float, false>(b, 1.0f, 9);", (2, 2)),
        # A mask among the parameters is written to the register and stays there.
        ("Duplicate(b, 1.0f, 3, 1, 1, 8);", (3, 3)),
        ("uint64_t bits[2] = {3, 0}; Duplicate(b, 1.0f, bits, 1, 1, 8);", (2, 2)),
        ("SetMaskCount(); Duplicate(b, 1.0f, 70, 1, 1, 8);", (64, 6)),
        # What has lanes but no mask leaves the register alone.
        ("SetVectorMask<float>(0, 3); Brcb(b, b[128], 1, {1, 8});", (2, 2)),
    ],
)
def test_what_a_call_leaves_in_the_mask_register(
    compile_kernel, before: str, counts: tuple[int, int]
) -> None:
    y = np.zeros(256, np.float32)
    compile_kernel(LEFT % before)(y)
    expected = np.zeros(256, np.float32)
    expected[: counts[0]] = 1
    expected[64 : 64 + counts[1]] = 1
    np.testing.assert_array_equal(y, expected)
