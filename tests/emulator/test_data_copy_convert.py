"""DataCopy of slices, between ND and NZ, and InitOutput."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<%(type)s> in, out;
  in.SetGlobalBuffer((__gm__ %(type)s*)x, 0);
  out.SetGlobalBuffer((__gm__ %(type)s*)y, 0);
  LocalTensor<%(type)s> local(TPosition::VECIN, 0, %(count)d);
  %(body)s
}
"""


def text_of(kind: str, count: int, body: str) -> str:
    return KERNEL % {"type": kind, "count": count, "body": body}


SLICES = """
  SliceInfo from[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}};
  SliceInfo to[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}};
  DataCopy(local, in, to, from, 2);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, local, to, to, 2);
"""


def test_slices_take_pieces_of_some_rows(compile_kernel) -> None:
    x = np.arange(3 * 87, dtype=np.float32)
    y = np.zeros((2, 48), np.float32)
    compile_kernel(text_of("float", 96, SLICES))(x, y)
    rows = x.reshape(3, 87)[[0, 2]]
    np.testing.assert_array_equal(y, np.hstack([rows[:, 16:40], rows[:, 47:71]]))


@pytest.mark.parametrize(
    ("slices", "text"),
    [
        ("{{16, 71, 7, 3, 87}, {0, 2, 1, 1, 3}}", "not a whole number of pieces"),
        ("{{16, 70, 7, 3, 60}, {0, 2, 1, 1, 3}}", "not below its shapeValue"),
        ("{{16, 70, 7, 3, 87}, {0, 0, 1, 1, 3}}", "different numbers"),
    ],
)
def test_slices_that_do_not_fit_fault(compile_kernel, slices, text) -> None:
    body = SLICES.replace("{{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}}", slices)
    with pytest.raises(KernelFault, match=text):
        compile_kernel(text_of("float", 96, body))(
            np.zeros(261, np.float32), np.zeros(96, np.float32)
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "dtype"), [("half", np.float16), ("float", np.float32), ("int8_t", np.int8)]
)
@pytest.mark.parametrize("columns", [8, 32, 40, 41])
def test_nd2nz_lays_out_columns_of_32_bytes(compile_kernel, kind, dtype, columns) -> None:
    rows, pitch, c0 = 6, 48, 32 // np.dtype(dtype).itemsize
    planes = -(-columns // c0)
    count = planes * rows * c0
    body = f"""
      Nd2NzParams params{{1, {rows}, {columns}, 0, {pitch}, {rows}, 1, 0}};
      DataCopy(local, in, params);
      PipeBarrier<PIPE_ALL>();
      DataCopy(out, local, {count});
    """
    x = (np.arange(rows * pitch) % 100 + 1).astype(dtype)
    y = np.full(count, 111, dtype)
    compile_kernel(text_of(kind, count, body))(x, y)
    padded = np.zeros((rows, planes * c0), dtype)
    padded[:, :columns] = x.reshape(rows, pitch)[:, :columns]
    expected = padded.reshape(rows, planes, c0).transpose(1, 0, 2)
    np.testing.assert_array_equal(y.reshape(planes, rows, c0), expected)


def test_nd2nz_takes_several_matrices(compile_kernel) -> None:
    body = """
      Nd2NzParams params{2, 2, 24, 144, 48, 11, 2, 96};
      DataCopy(local, in, params);
      PipeBarrier<PIPE_ALL>();
      DataCopy(out, local, 512);
    """
    x = np.arange(1, 257, dtype=np.float16)
    y = np.zeros(512, np.float16)
    compile_kernel(text_of("half", 512, body))(x, y)
    for matrix in range(2):
        for row in range(2):
            source = x[matrix * 144 + row * 48 :][:24]
            first = matrix * 96 + row * 32
            np.testing.assert_array_equal(y[first : first + 16], source[:16])
            second = first + 11 * 16
            np.testing.assert_array_equal(y[second : second + 8], source[16:])
            assert not y[second + 8 : second + 16].any()


@pytest.mark.parametrize(("kind", "dtype"), [("half", np.float16), ("float", np.float32)])
def test_nz2nd_undoes_columns_of_16(compile_kernel, kind, dtype) -> None:
    body = """
      DataCopy(local, in, 1024);
      PipeBarrier<PIPE_ALL>();
      DataCopy(out, local, Nz2NdParamsFull{1, 32, 32, 1, 32, 32, 1});
    """
    x = np.arange(1024).astype(dtype)
    y = np.zeros((32, 32), dtype)
    compile_kernel(text_of(kind, 1024, body))(x, y)
    np.testing.assert_array_equal(y, x.reshape(2, 32, 16).transpose(1, 0, 2).reshape(32, 32))


def test_init_output_fills_what_it_is_told_and_no_more(compile_kernel) -> None:
    y = np.zeros(40, np.float32)
    compile_kernel(text_of("float", 8, "InitOutput<float>(out[3], 30, 1.5f);"))(
        np.zeros(1, np.float32), y
    )
    np.testing.assert_array_equal(y, [0] * 3 + [1.5] * 30 + [0] * 7)


def test_bursts_off_the_data_blocks_of_ub_fault(compile_kernel) -> None:
    body = """
      SliceInfo from[] = {{0, 19, 4, 1, 32}};
      DataCopy(local, in, from, from, 1);
    """
    with pytest.raises(KernelFault, match=r"48 .*not a multiple of 32") as caught:
        compile_kernel(text_of("float", 64, body))(
            np.zeros(64, np.float32), np.zeros(1, np.float32)
        )
    assert caught.value.category == "Misaligned"
