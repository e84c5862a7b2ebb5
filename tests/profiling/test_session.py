"""Switching the model on around a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import KernelFault, UsageError
from opkit.profiling import Profile, profile, profile_all


def test_a_call_that_launches_nothing_cannot_be_profiled() -> None:
    with pytest.raises(UsageError, match="launched no kernel"):
        profile(len, [])


def test_all_launches_of_such_a_call_are_none() -> None:
    assert profile_all(len, []) == []


def test_the_device_is_left_as_it_was() -> None:
    before = runtime.configuration()
    with Profile():
        assert runtime.configuration().profile
    assert runtime.configuration() == before


def test_an_error_inside_leaves_the_device_as_it_was_too() -> None:
    with pytest.raises(ZeroDivisionError), Profile():
        raise ZeroDivisionError
    assert not runtime.configuration().profile


def test_a_negative_event_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="event_limit is -1"):
        Profile(event_limit=-1)


def test_a_kernel_that_only_waits_and_signals_is_timed(
    compile_kernel: Callable[..., object],
) -> None:
    run = compile_kernel(
        """
        extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
          (void)x;
          TPipe pipe;
          TQue<TPosition::VECIN, 1> queue;
          pipe.InitBuffer(queue, 2, 256);
          for (int i = 0; i < 5; ++i) {
            LocalTensor<half> given = queue.AllocTensor<half>();
            queue.EnQue(given);
            LocalTensor<half> taken = queue.DeQue<half>();
            queue.FreeTensor(taken);
          }
        }
        """
    )
    timeline = profile(run, np.zeros(1))
    assert timeline.task_us > 0


def test_a_launch_that_is_kept_can_be_timed_again(compile_kernel: Callable[..., object]) -> None:
    import opkit.emulator._emulator as emulator

    run = compile_kernel(Path(__file__).with_name("advice_pairs.cpp").read_text("utf-8"))
    x = np.ones(2 * (4096 * 24 + 256), np.float16)
    with Profile(event_limit=0) as session:
        emulator.timing_options(0, keeps_instructions=True)
        run(x, np.zeros_like(x), block_dim=2, tiling_key=1)
    (kept,) = emulator.take_kept_launches()
    (ran,) = session.timelines

    def task_us(chip: str, **numbers: float) -> float:
        return float(json.loads(kept.time(chip, 0, numbers=list(numbers.items())))["task_us"])

    assert task_us("Ascend910B2") == pytest.approx(ran.task_us, rel=1e-9)
    slower = task_us("Ascend910B2", **{"timing.mte2.bytes_per_cycle": 10.0})
    assert slower > 1.2 * ran.task_us
    assert task_us("Ascend910B4") > ran.task_us

    again = emulator.KeptLaunch.unpack(kept.pack())
    for limit in (0, 100):
        assert again.time("Ascend910B2", limit) == kept.time("Ascend910B2", limit)
    for spoilt in (b"", kept.pack()[:-1], b"x" + kept.pack()[1:]):
        with pytest.raises(ValueError, match=r"too soon|another build"):
            emulator.KeptLaunch.unpack(spoilt)


def test_a_packed_launch_keeps_what_its_instructions_point_to() -> None:
    import opkit.emulator._emulator as emulator

    product = {"op": "Mmad", "pipe": "M", "product": {"m": 128, "n": 256, "k": 64}, "line": 7}
    load = {"op": "LoadData2D", "pipe": "MTE1", "dst": {"space": 3}, "src": [{"space": 2}]}
    stream = [{**load, "load": {"repeat": repeat}} for repeat in (4, 8)] + [product] * 3
    kept = emulator.KeptLaunch.of([stream, [], stream[:2]], "aic")
    record = json.loads(kept.time("Ascend910B2"))
    assert record["cores"][0]["busy_cycles"]["M"] > 3 * 128
    assert emulator.KeptLaunch.unpack(kept.pack()).time("Ascend910B2") == kept.time("Ascend910B2")


_STEERED = """
    extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
      GlobalTensor<float> from, to;
      from.SetGlobalBuffer((__gm__ float*)x, 64);
      to.SetGlobalBuffer((__gm__ float*)y, 64);
      LocalTensor<float> value(TPosition::VECCALC, 0, 64), own(TPosition::VECCALC, 256, 8);
      DataCopy(value, from, 64);
      PipeBarrier<PIPE_ALL>();
      const uint32_t given = uint32_t(from.GetValue(0));
      own.SetValue(0, 2.0f);
      const uint32_t times = given + uint32_t(own.GetValue(0));
      for (uint32_t i = 0; i < times; ++i) Adds(value, value, 1.0f, 64);
      PipeBarrier<PIPE_ALL>();
      DataCopy(to, value, 64);
      PipeBarrier<PIPE_ALL>();
      STEER
    }
"""


def test_a_run_without_arithmetic_takes_the_same_cycles(
    compile_kernel: Callable[..., object],
) -> None:
    run = compile_kernel(_STEERED.replace("STEER", ""))
    cycles = []
    for timing_only in (False, True):
        x, y = np.full(64, 3, np.float32), np.zeros(64, np.float32)
        with Profile(timing_only=timing_only) as session:
            run(x, y)  # type: ignore[operator]
        (timeline,) = session.timelines
        cycles.append(timeline.total_cycles)
        assert y[0] == (0 if timing_only else 8)
        assert sum(line.count for line in timeline.lines if line.instruction == "Adds") == 5
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize("read", ["value.GetValue(0)", "to.GetValue(0)"])
def test_a_scalar_that_reads_what_was_not_computed_ends_a_run_without_arithmetic(
    compile_kernel: Callable[..., object], read: str
) -> None:
    run = compile_kernel(_STEERED.replace("STEER", f"if ({read} > 7) PipeBarrier<PIPE_ALL>();"))
    tensors = np.full(64, 3, np.float32), np.zeros(64, np.float32)
    run(*tensors)  # type: ignore[operator]
    fault = pytest.raises(KernelFault, match="without arithmetic has not computed")
    with fault, Profile(timing_only=True):
        run(*tensors)  # type: ignore[operator]
    run(*tensors)  # type: ignore[operator]


def test_the_system_counter_shows_the_time_that_the_profile_shows(
    compile_kernel: Callable[..., Callable[..., object]],
) -> None:
    # It used to count instructions: two calls around any work were a few counts apart.
    kernel = compile_kernel(
        """
        extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
          TPipe pipe;
          TBuf<TPosition::VECCALC> buffer;
          pipe.InitBuffer(buffer, 65536);
          LocalTensor<float> x = buffer.Get<float>();
          Duplicate(x, 1.0f, 16384);
          PipeBarrier<PIPE_ALL>();
          const int64_t before = GetSystemCycle();
          for (int i = 0; i < 100; ++i) {
            Adds(x, x, 1.0f, 16384);
            PipeBarrier<PIPE_V>();
          }
          PipeBarrier<PIPE_ALL>();
          const int64_t after = GetSystemCycle();
          GlobalTensor<int64_t> out;
          out.SetGlobalBuffer((__gm__ int64_t*)y, 2);
          out.SetValue(0, before);
          out.SetValue(1, after);
        }
        """
    )
    counts = np.zeros(2, np.int64)
    timeline = profile(lambda: kernel(counts))
    vector = next(time for time in timeline.pipes() if time.pipe == "V")
    # A count is a fiftieth of a microsecond. Source: Ascend C API, GetSystemCycle.
    (spent,) = np.diff(counts) / 50
    line = next(line for line in timeline.lines if line.instruction == "Adds")
    assert spent == pytest.approx(line.cycles / timeline.clock_mhz, rel=0.1)
    assert spent < vector.mean_us
    plain = np.zeros(2, np.int64)
    # A device of torch in this process times what it launches.
    runtime.configure(profile=False)
    kernel(plain)
    # It used to count instructions where nobody asked for times: 201.
    assert plain.tolist() == counts.tolist()


def test_a_kernel_that_waits_by_the_system_counter_goes_on(
    compile_kernel: Callable[..., Callable[..., object]],
) -> None:
    # Reading took no time and issued nothing: such a loop never ended.
    kernel = compile_kernel(
        """
        extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
          const int64_t begin = GetSystemCycle();
          int64_t reads = 1;
          while (GetSystemCycle() < begin + 10) ++reads;
          GlobalTensor<int64_t> out;
          out.SetGlobalBuffer((__gm__ int64_t*)y, 1);
          out.SetValue(0, reads);
        }
        """
    )
    reads = np.zeros(1, np.int64)
    runtime.configure(profile=False)
    kernel(reads)
    # Ten counts are 360 cycles of 1800 MHz, and a read takes one.
    assert reads[0] == pytest.approx(360, abs=36)
