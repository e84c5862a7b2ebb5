"""TPipe, TQue and TBuf: the misuse that they find, beside the same kernel without it."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
  (void)x;
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  TBuf<TPosition::VECCALC> scratch;
  %s
}
"""

CORRECT = """
  pipe.InitBuffer(queue, 2, 256);
  for (int i = 0; i < 5; ++i) {
    LocalTensor<half> a = queue.AllocTensor<half>();
    queue.EnQue(a);
    LocalTensor<half> b = queue.DeQue<half>();
    queue.FreeTensor(b);
  }
"""

MISUSE = {
    "before_init": ("queue.AllocTensor<half>();", "this queue has no buffers"),
    "dequeue_empty": (
        "pipe.InitBuffer(queue, 1, 256); queue.DeQue<half>();",
        "DeQue: the queue is empty",
    ),
    "dequeue_empty_without_a_type": (
        "pipe.InitBuffer(queue, 1, 256); queue.DeQue();",
        "DeQue: the queue is empty",
    ),
    "never_freed": (
        "pipe.InitBuffer(queue, 1, 256); queue.AllocTensor<half>(); queue.AllocTensor<half>();",
        "all 1 buffers of this queue are in use",
    ),
    "enqueued_twice": (
        "pipe.InitBuffer(queue, 2, 256); auto a = queue.AllocTensor<half>(); queue.EnQue(a); queue.EnQue(a);",
        "in the queue already",
    ),
    "freed_twice": (
        "pipe.InitBuffer(queue, 1, 256); auto a = queue.AllocTensor<half>(); queue.FreeTensor(a);"
        " queue.FreeTensor(a);",
        "freed already",
    ),
    "freed_in_queue": (
        "pipe.InitBuffer(queue, 1, 256); auto a = queue.AllocTensor<half>(); queue.EnQue(a);"
        " queue.FreeTensor(a);",
        "still in the queue",
    ),
    "foreign_tensor": (
        "pipe.InitBuffer(queue, 1, 256); pipe.InitBuffer(scratch, 64);"
        " queue.EnQue(scratch.Get<half>());",
        "belongs to none of this queue's 1 buffers",
    ),
}


def test_a_queue_used_in_order_runs(compile_kernel) -> None:
    assert compile_kernel(KERNEL % CORRECT)(np.zeros(1)).instructions > 0


def test_a_tensor_that_the_kernel_has_leaves_the_queue_without_being_asked_for(
    compile_kernel,
) -> None:
    again = CORRECT.replace("LocalTensor<half> b = queue.DeQue<half>();", "queue.DeQue();")
    again = again.replace("FreeTensor(b)", "FreeTensor(a)")
    assert compile_kernel(KERNEL % again)(np.zeros(1)).instructions > 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", MISUSE)
def test_a_queue_used_out_of_order_faults(compile_kernel, case) -> None:
    body, text = MISUSE[case]
    with pytest.raises(KernelFault, match=text) as caught:
        compile_kernel(KERNEL % body)(np.zeros(1))
    assert caught.value.category == "QueueMisuse"


# On the chip InitBuffer counts addresses. It faulted here, so that kernels for several types, which
# place a buffer that only some of them use, ran for none.
OVERFULL = "pipe.InitBuffer(queue, 2, 96 * 1024); pipe.InitBuffer(scratch, 32);"


def test_buffers_over_the_chips_ub_fault_where_they_are_touched_with_what_is_given_out(
    compile_kernel,
) -> None:
    run = compile_kernel(KERNEL % (OVERFULL + "Duplicate(scratch.Get<half>(), half(1), 16);"))
    text = (
        r"Duplicate touches bytes 196608\.\.196640 of UB, which has 196608(.|\n)*32 bytes at byte"
    )
    with pytest.raises(KernelFault, match=text) as caught:
        run(np.zeros(1))
    assert caught.value.category == "OutOfBounds"


def test_buffers_over_the_chips_ub_are_nothing_to_a_kernel_that_leaves_them_alone(
    compile_kernel,
) -> None:
    body = (
        OVERFULL
        + """
  LocalTensor<uint8_t> left;
  PopStackBuffer<uint8_t, TPosition::LCM>(left);
  *reinterpret_cast<__gm__ uint64_t*>(x) = left.GetSize();
"""
    )
    x = np.ones(1, dtype=np.uint64)
    compile_kernel(KERNEL % body)(x)
    assert x[0] == 0


def test_no_pointer_leads_behind_a_memory(compile_kernel) -> None:
    # Whoever writes through it would write into the next memory.
    run = compile_kernel(KERNEL % (OVERFULL + "(void)scratch.Get<half>().GetPhyAddr(1);"))
    with pytest.raises(KernelFault, match=r"GetPhyAddr: byte 196610 of UB, which has 196608"):
        run(np.zeros(1))


def test_a_pipe_that_is_assigned_goes_on_behind_the_others_buffers(compile_kernel) -> None:
    # No pipe could be assigned.
    body = """
  struct Part { TPipe pipe; TBuf<TPosition::VECCALC> buffer; } part;
  pipe.InitBuffer(scratch, 256);
  part.pipe = pipe;
  part.pipe.InitBuffer(part.buffer, 64);
  const auto first = reinterpret_cast<uint64_t>(scratch.Get<half>().GetPhyAddr());
  const auto second = reinterpret_cast<uint64_t>(part.buffer.Get<half>().GetPhyAddr());
  *reinterpret_cast<__gm__ uint64_t*>(x) = second - first;
"""
    x = np.zeros(4, dtype=np.uint64)
    compile_kernel(KERNEL % body)(x)
    assert x[0] == 256


def test_a_tensor_larger_than_its_buffer_faults(compile_kernel) -> None:
    run = compile_kernel(KERNEL % "pipe.InitBuffer(scratch, 64); scratch.Get<float>(17);")
    with pytest.raises(KernelFault, match="larger than the buffer"):
        run(np.zeros(1))


def test_event_ids_of_a_pair_of_pipes_run_out_at_eight(compile_kernel) -> None:
    loop = "for (int i = 0; i < %d; ++i) pipe.AllocEventID<HardEvent::MTE2_V>();"
    compile_kernel(KERNEL % (loop % 8))(np.zeros(1))
    with pytest.raises(KernelFault, match="all 8 event ids"):
        compile_kernel(KERNEL % (loop % 9))(np.zeros(1))


def test_fetching_an_event_id_does_not_occupy_it(compile_kernel) -> None:
    body = """
      int32_t first = pipe.FetchEventID(HardEvent::V_S);
      int32_t second = pipe.FetchEventID<HardEvent::V_S>();
      if (first != second) ASSERT(false);
    """
    compile_kernel(KERNEL % body)(np.zeros(1))


def test_releasing_an_id_that_is_not_held_faults(compile_kernel) -> None:
    with pytest.raises(KernelFault, match="id 3 is not in use"):
        compile_kernel(KERNEL % "pipe.ReleaseEventID<HardEvent::MTE2_V>(3);")(np.zeros(1))
