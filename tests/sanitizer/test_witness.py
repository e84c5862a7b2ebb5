"""Races replayed in the order that loses: the value that a kernel would leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit.sanitizer import Finding, Witness, find_class, finding_text
from opkit.sanitizer.witness import read_witness

CheckKernel = Callable[..., tuple[Finding, ...]]


def arrays() -> list[np.ndarray]:
    return [np.arange(1, 129, dtype=np.float32), np.zeros(128, np.float32)]


def witness(check_kernel: CheckKernel, text: str, inputs: list[np.ndarray]) -> Witness:
    block_dim = 2 if "GetBlockIdx" in text else 1
    (found, *_) = check_kernel(text, witness=True, inputs=inputs, block_dim=block_dim)
    assert found.witness is not None
    return found.witness


# What each example leaves in y when the copies and sums run in the order of its race.
@pytest.mark.parametrize(
    ("id", "element", "ordered", "lost", "differing"),
    [
        # The sum runs on what local memory held, which a replay fills with NaN.
        ("RACE-RAW", 0, "2", "nan", 64),
        # The second tile overwrites the first before that is copied out.
        ("RACE-WAR", 0, "1", "65", 64),
        # The zeros arrive behind the data.
        ("RACE-WAW", 0, "1", "0", 32),
    ],
)
def test_the_losing_order_of_two_pipes_shows_the_wrong_value(
    id: str, element: int, ordered: str, lost: str, differing: int, check_kernel: CheckKernel
) -> None:
    seen = witness(check_kernel, find_class(id).example(), arrays())
    assert (seen.element, seen.ordered, seen.lost) == (element, ordered, lost)
    assert (seen.differing, seen.dtype, seen.fault) == (differing, "float32", "")


def test_the_losing_order_of_two_cores_shows_the_wrong_value(check_kernel: CheckKernel) -> None:
    text = find_class("RACE-CORES-WRITE").example()
    text = text.replace("input, 16)", "input[GetBlockIdx() * 16], 16)")
    text = text.replace("(x), 16)", "(x), 32)")
    seen = witness(check_kernel, text, arrays())
    # Elements 8 to 16 belong to both blocks: block 0 writes 9.., block 1 writes 17...
    assert (seen.element, seen.differing) == (8, 8)
    assert {seen.ordered, seen.lost} == {"9", "17"}


def test_global_memory_is_left_as_the_launch_itself_left_it(check_kernel: CheckKernel) -> None:
    x, y = arrays()
    witness(check_kernel, find_class("RACE-RAW").example(), [x, y])
    np.testing.assert_array_equal(y[:64], np.arange(2, 66))


def test_a_race_that_changes_nothing_says_so(check_kernel: CheckKernel) -> None:
    text = find_class("RACE-WAW").example()
    seen = witness(check_kernel, text, [np.zeros(128, np.float32), np.zeros(128, np.float32)])
    assert (seen.differing, seen.place) == (0, "")


HELD_CHAIN = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 128);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 128);
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  LocalTensor<float> b(TPosition::VECCALC, 256, 64);
  Duplicate(b, 5.0f, 64);
  SetFlag<HardEvent::V_MTE2>(EVENT_ID1);
  WaitFlag<HardEvent::V_MTE2>(EVENT_ID1);
  DataCopy(a, input, 64);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Adds(a, a, 1.0f, 64);
  DataCopy(output, b, 64);
  DataCopy(output[64], a, 64);
}
"""


def test_what_waits_for_a_late_pipe_is_late_too(check_kernel: CheckKernel) -> None:
    # b is ordered by nothing before it is copied out, nor is a; each is replayed by itself.
    first, second = check_kernel(HELD_CHAIN, witness=True, inputs=arrays())
    assert first.witness is not None and second.witness is not None
    assert (first.witness.element, first.witness.ordered) == (0, "5")
    assert (second.witness.element, second.witness.ordered, second.witness.lost) == (64, "2", "1")
    # With b late, the copy into a waits for it, the sum for that, and the copy out of a for b.
    assert (first.witness.lost, first.witness.differing) == ("nan", 64)


FRACTALS = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<half> input;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), 256);
  GlobalTensor<float> output;
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 128);
  LocalTensor<half> a1(TPosition::A1, 0, 512), a2(TPosition::A2, 0, 512), b2(TPosition::B2, 0, 512);
  LocalTensor<float> c(TPosition::CO1, 0, 256);
  DataCopy(a1, input, 256);
  DataCopy(a1[256], input, 256);
  PipeBarrier<PIPE_ALL>();
  LoadData(b2, a1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
  SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
  WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
  LoadData(a2, a1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
  Mmad(c, a2, b2, MmadParams(8, 16, 32, 0, false, true));
  PipeBarrier<PIPE_ALL>();
  Fixpipe(output, c, FixpipeParamsV220(16, 8, 16, 16, false));
}
OPKIT_KERNEL_TABLE_AS(kernel, Cube)
#undef OPKIT_KERNEL_TABLE
#define OPKIT_KERNEL_TABLE(name)
"""


def test_loads_of_fractals_are_replayed_late(check_kernel: CheckKernel) -> None:
    ones = np.ones(256, np.float16).view(np.float32)
    (found,) = check_kernel(FRACTALS, witness=True, inputs=[ones, np.zeros(128, np.float32)])
    assert (found.id, found.sub_core) == ("RACE-RAW", "aic")
    assert found.witness is not None
    # Each element is a sum of 32 products of ones; L0A begins as NaN.
    assert (found.witness.ordered, found.witness.lost) == ("32", "nan")
    assert found.witness.differing == 128


def test_without_being_asked_for_nothing_is_replayed(check_kernel: CheckKernel) -> None:
    (found,) = check_kernel(find_class("RACE-RAW").example(), inputs=arrays())
    assert found.witness is None


def test_the_report_tells_the_value_and_its_place(check_kernel: CheckKernel) -> None:
    (found,) = check_kernel(find_class("RACE-WAR").example(), witness=True, inputs=arrays())
    text = finding_text(found, Path("/"))
    assert "in the losing order float32 element 0 of" in text
    assert "is 65 instead of 1; 64 elements differ" in text


def test_values_are_read_by_their_type() -> None:
    record = {"differing": 1, "place": "y", "element": 3, "fault": ""}
    values = [("F16", "003c", "1"), ("BF16", "803f", "1"), ("S8", "ff", "-1"), ("S4", "7f", "0x7f")]
    for code, digits, shown in values:
        seen = read_witness({**record, "dtype": code, "ordered": digits, "lost": digits})
        assert seen is not None
        assert seen.ordered == shown
