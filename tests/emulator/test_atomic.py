"""Atomic writes to global memory against NumPy, per data type, and what the documents leave open."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<%(type)s> in, out;
  in.SetGlobalBuffer((__gm__ %(type)s*)x + GetBlockIdx() * %(count)d, %(count)d);
  out.SetGlobalBuffer((__gm__ %(type)s*)y, %(count)d);
  LocalTensor<%(type)s> local(TPosition::VECIN, 0, %(count)d);
  DataCopy(local, in, %(count)d);
  PipeBarrier<PIPE_ALL>();
  %(set)s;
  DataCopyPad(out, local, DataCopyExtParams{1, %(count)d * sizeof(%(type)s), 0, 0, 0});
  DisableDmaAtomic();
}
"""

TYPES = {
    "int8_t": np.int8,
    "int16_t": np.int16,
    "int32_t": np.int32,
    "half": np.float16,
    "float": np.float32,
}
OPERATIONS = {"SetAtomicAdd": np.add, "SetAtomicMax": np.maximum, "SetAtomicMin": np.minimum}
BLOCKS, COUNT = 4, 64


def kernel_of(operation: str, kind: str, count: int = COUNT) -> str:
    return KERNEL % {"type": kind, "count": count, "set": f"{operation}<{kind}>()"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_blocks_combine_into_one_output(compile_kernel, operation, kind) -> None:
    generator = np.random.default_rng(1)
    x = generator.integers(-20, 20, (BLOCKS, COUNT)).astype(TYPES[kind])
    y = generator.integers(-20, 20, COUNT).astype(TYPES[kind])
    expected = OPERATIONS[operation].reduce(np.vstack([y, x]), axis=0, dtype=TYPES[kind])
    compile_kernel(kernel_of(operation, kind))(x, y, block_dim=BLOCKS)
    np.testing.assert_array_equal(y, expected)


def test_a_type_without_atomic_writes_is_refused_where_it_is_reached(compile_kernel) -> None:
    # It did not compile: kernels for several types with it in a branch had no variant at all.
    text = kernel_of("SetAtomicAdd", "uint8_t").replace(
        "SetAtomicAdd<", "if (y != nullptr) SetAtomicAdd<"
    )
    kernel = compile_kernel(text)
    x = np.ones((1, COUNT), np.uint8)
    with pytest.raises(KernelFault, match="atomic writes work on int8_t"):
        kernel(x, np.zeros(COUNT, np.uint8))
    passed_by = compile_kernel(text.replace("y != nullptr", "y == nullptr"))
    y = np.zeros(COUNT, np.uint8)
    passed_by(x, y)
    np.testing.assert_array_equal(y, x[0])


def test_bfloat16_adds_with_one_rounding(compile_kernel) -> None:
    x = np.array([1.0] * 16 + [0.00390625] * 16, dtype=np.float32).view(np.uint32) >> 16
    y = np.full(32, 1.0, dtype=np.float32).view(np.uint32) >> 16
    x, y = x.astype(np.uint16), y.astype(np.uint16)
    compile_kernel(kernel_of("SetAtomicAdd", "bfloat16_t", 32))(x, y)
    result = (y.astype(np.uint32) << 16).view(np.float32)
    # 1 + 2^-8 lies half way between two bfloat16 and goes to the even one.
    np.testing.assert_array_equal(result, [2.0] * 16 + [1.0] * 16)


def test_many_blocks_on_many_threads_lose_no_addition(compile_kernel) -> None:
    from opkit.emulator import _emulator

    _emulator.configure(**{**_emulator.configuration(), "threads": 4})
    x, y = np.ones((64, COUNT), np.int32), np.zeros(COUNT, np.int32)
    compile_kernel(kernel_of("SetAtomicAdd", "int32_t"))(x, y, block_dim=64)
    np.testing.assert_array_equal(y, np.full(COUNT, 64))


@pytest.mark.parametrize("end", ["SetAtomicNone()", "DisableDmaAtomic()"])
def test_a_write_after_the_end_overwrites(compile_kernel, end) -> None:
    run = compile_kernel(
        KERNEL % {"type": "float", "count": 16, "set": f"SetAtomicAdd<float>(); {end}"}
    )
    x, y = np.full(16, 2, np.float32), np.full(16, 5, np.float32)
    run(x, y)
    np.testing.assert_array_equal(y, x)


def test_atomic_operations_leave_copies_into_local_memory_alone(compile_kernel) -> None:
    body = KERNEL.replace("DataCopy(local, in, %(count)d);", "%(set)s; DataCopy(local, in, 16);")
    run = compile_kernel(body % {"type": "float", "count": 16, "set": "SetAtomicAdd<float>()"})
    x, y = np.full(16, 2, np.float32), np.full(16, 5, np.float32)
    run(x, y)
    np.testing.assert_array_equal(y, x + 5)


def test_the_store_configuration_reads_back(compile_kernel) -> None:
    body = """
    extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
      GlobalTensor<int32_t> out;
      out.SetGlobalBuffer((__gm__ int32_t*)y, 4);
      uint16_t type = 9, operation = 9;
      GetStoreAtomicConfig(type, operation);
      out.SetValue(0, type);
      SetStoreAtomicConfig<AtomicDtype::ATOMIC_F16, AtomicOp::ATOMIC_SUM>();
      GetStoreAtomicConfig(type, operation);
      out.SetValue(1, type);
      out.SetValue(2, operation);
    }
    """
    y = np.full(4, -1, np.int32)
    compile_kernel(body)(y)
    np.testing.assert_array_equal(y, [0, 2, 0, -1])


@pytest.mark.parametrize(
    ("operation", "kind", "value", "text"),
    [
        ("SetAtomicAdd", "int8_t", 100, "overflows its integer type"),
        ("SetAtomicMax", "float", np.nan, "meets a NaN"),
    ],
)
def test_what_no_document_says_is_a_fault(compile_kernel, operation, kind, value, text) -> None:
    x, y = np.full(COUNT, value, TYPES[kind]), np.full(COUNT, 100, TYPES[kind])
    run = compile_kernel(kernel_of(operation, kind))
    with pytest.raises(KernelFault, match=text) as caught:
        run(x, y)
    assert caught.value.category == "Unspecified"
    # The lock of that piece of memory is free again.
    compile_kernel(kernel_of("SetAtomicAdd", "float"))(
        np.zeros(COUNT, np.float32), y.astype(np.float32)
    )
