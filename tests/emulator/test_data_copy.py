"""What DataCopy and DataCopyPad put where."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

COPY_ROWS = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<half> in, out;
  in.SetGlobalBuffer((__gm__ half*)x, 0);
  out.SetGlobalBuffer((__gm__ half*)y, 0);
  LocalTensor<half> local(TPosition::VECIN, 0, 1024);
  %s
}
"""


def test_a_contiguous_copy_moves_whole_blocks_and_rounds_the_rest_down(compile_kernel) -> None:
    run = compile_kernel(
        COPY_ROWS % "DataCopy(local, in, 40); PipeBarrier<PIPE_ALL>(); DataCopy(out, local, 40);"
    )
    x = np.arange(1, 65, dtype=np.float16)
    y = np.zeros_like(x)
    run(x, y)
    np.testing.assert_array_equal(y[:32], x[:32])
    assert not y[32:].any()


def test_block_gaps_count_data_blocks_between_the_end_and_the_next_start(compile_kernel) -> None:
    run = compile_kernel(
        COPY_ROWS
        % "DataCopy(local, in, DataCopyParams{2, 1, 1, 0}); DataCopy(out, local, DataCopyParams{2, 1, 0, 2});"
    )
    x = np.arange(64, dtype=np.float16)
    y = np.full(96, -1, dtype=np.float16)
    run(x, y)
    expected = np.full(96, -1, dtype=np.float16)
    expected[0:16] = x[0:16]
    expected[48:64] = x[32:48]
    np.testing.assert_array_equal(y, expected)


def test_padding_fills_the_block_with_the_bursts_first_element_by_default(compile_kernel) -> None:
    run = compile_kernel(
        COPY_ROWS
        % "DataCopyPad(local, in, DataCopyExtParams{2, 6, 0, 0, 0}, DataCopyPadExtParams<half>{false, 0, 0, 0});"
        " DataCopy(out, local, 32);"
    )
    x = np.array([1, 2, 3, 4, 5, 6], dtype=np.float16)
    y = np.zeros(32, dtype=np.float16)
    run(x, y)
    np.testing.assert_array_equal(y[:16], [1, 2, 3] + [1] * 13)
    np.testing.assert_array_equal(y[16:], [4, 5, 6] + [4] * 13)


def test_padding_with_a_value_fills_left_right_and_the_rest_of_the_block(compile_kernel) -> None:
    run = compile_kernel(
        COPY_ROWS
        % "DataCopyPad(local, in, DataCopyExtParams{1, 6, 0, 0, 0}, DataCopyPadExtParams<half>{true, 2, 1, 9});"
        " DataCopy(out, local, 16);"
    )
    x = np.array([1, 2, 3], dtype=np.float16)
    y = np.zeros(16, dtype=np.float16)
    run(x, y)
    np.testing.assert_array_equal(y, [9, 9, 1, 2, 3] + [9] * 11)


def test_padding_of_int4b_t_fills_both_elements_of_a_byte(compile_kernel) -> None:
    run = compile_kernel(
        COPY_ROWS
        % "GlobalTensor<int4b_t> pairs; pairs.SetGlobalBuffer((__gm__ int4b_t*)in.GetPhyAddr());"
        " DataCopyPad(local.ReinterpretCast<int4b_t>(), pairs, DataCopyExtParams{1, 6, 0, 0, 0},"
        " DataCopyPadExtParams<int4b_t>(true, 0, 0, -3)); DataCopy(out, local, 16);"
    )
    x = np.array([1, 2, 3], dtype=np.float16)
    y = np.zeros(16, dtype=np.float16)
    run(x, y)
    np.testing.assert_array_equal(y.view(np.uint8), [*x.view(np.uint8), *[0xDD] * 26])


def test_a_padded_copy_to_global_memory_writes_only_its_own_bytes(compile_kernel) -> None:
    run = compile_kernel(
        COPY_ROWS % "DataCopy(local, in, 64); PipeBarrier<PIPE_ALL>();"
        " DataCopyPad(out, local, DataCopyExtParams{2, 10, 1, 4, 0});"
    )
    x = np.arange(64, dtype=np.float16)
    y = np.full(16, -1, dtype=np.float16)
    run(x, y)
    expected = np.full(16, -1, dtype=np.float16)
    expected[0:5] = x[0:5]
    expected[7:12] = x[32:37]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("call", "category", "text"),
    [
        (
            "DataCopy(local, in, 2048);",
            "OutOfBounds",
            "DataCopy reads 4096 bytes .* the last 3968 of them behind the end of argument 0",
        ),
        ("DataCopy(local[8], in, 16);", "Misaligned", "dst address 16 in UB is not a multiple of"),
        (
            "LocalTensor<half> tiny(TPosition::VECIN, 0, 16); DataCopy(tiny, in, 32);",
            "OutOfBounds",
            "writes bytes 0..64 of a buffer that has 32 bytes in UB",
        ),
        (
            "DataCopyPad(local, in, DataCopyExtParams{1, 3, 0, 0, 0}, DataCopyPadExtParams<half>{});",
            "IllegalOperand",
            "blockLen 3 is not a multiple of the element's 2 bytes",
        ),
        (
            "LocalTensor<half> far(TPosition::VECIN, 192 * 1024, 16); DataCopy(far, in, 16);",
            "OutOfBounds",
            "of UB, which has 196608 bytes",
        ),
    ],
)
def test_a_copy_outside_what_it_may_touch_faults(compile_kernel, call, category, text) -> None:
    run = compile_kernel(COPY_ROWS % call)
    x, y = np.zeros(64, dtype=np.float16), np.zeros(64, dtype=np.float16)
    with pytest.raises(KernelFault, match=text) as caught:
        run(x, y)
    assert caught.value.category == category
    assert caught.value.file == run.source
    assert "DataCopy" in run.source.read_text().splitlines()[caught.value.line - 1]


WIDE_PADDING = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<int64_t> in, out;
  in.SetGlobalBuffer((__gm__ int64_t*)x, 3);
  out.SetGlobalBuffer((__gm__ int64_t*)y, 4);
  LocalTensor<int64_t> local(TPosition::VECIN, 0, 4);
  DataCopyPad(local, in, {1, 24, 0, 0, 0}, {true, 0, 1, %d});
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, local, 4);
}
"""


def test_eight_byte_elements_are_padded_with_zero_only(compile_kernel) -> None:
    x, y = np.arange(1, 4), np.full(4, 9)
    compile_kernel(WIDE_PADDING % 0)(x, y)
    np.testing.assert_array_equal(y, [1, 2, 3, 0])
    with pytest.raises(KernelFault, match="paddingValue of 8-byte elements can only be 0"):
        compile_kernel(WIDE_PADDING % 7)(x, y)
