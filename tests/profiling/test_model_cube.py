"""The laws of the cube core's pipes, and of the copies that feed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opkit.chips import find_chip
from opkit.profiling import Timeline

Instr = dict[str, Any]
Timer = Callable[..., Timeline]

GM, UB, L1, L0A, L0B, L0C = range(6)
FLOAT16, FLOAT32, INT8 = 0, 2, 3
NUMBER = find_chip("Ascend910B2").number


def mmad(m: int, n: int, k: int, dtype: int = FLOAT16) -> Instr:
    return {
        "op": "Mmad",
        "pipe": "M",
        "dst": {"space": L0C, "dtype": FLOAT32},
        "src": [{"space": L0A, "dtype": dtype}, {"space": L0B, "dtype": dtype}],
        "product": {"m": m, "n": n, "k": k},
    }


def load(space: int, size_bytes: int) -> Instr:
    fractals = {"repeat": size_bytes // 512}
    where = {"dst": {"space": space}, "src": [{"space": L1}]}
    return {"op": "LoadData2D", "pipe": "MTE1", **where, "load": fractals}


def unroll(space: int, rows: int, columns: int) -> Instr:
    image = {"repeat": 1, "rows": rows, "columns": columns}
    where = {"dst": {"space": space}, "src": [{"space": L1}]}
    return {"op": "LoadData3D", "pipe": "MTE1", **where, "image": image}


def copy_in(gm: int, size_bytes: int, bursts: int, stride: int, *, space: int = L1) -> Instr:
    return {
        "op": "DataCopy",
        "pipe": "MTE2",
        "dst": {"space": space, "address": 0},
        "src": [{"space": GM, "address": gm}],
        "burst_bytes": size_bytes,
        "burst_count": bursts,
        "src_stride": stride,
    }


def busy(timeline: Timeline, pipe: str) -> float:
    return timeline.cores[0].busy_cycles[pipe]


@pytest.mark.parametrize(("dtype", "macs"), [(FLOAT16, "fp16"), (FLOAT32, "fp32"), (INT8, "int8")])
def test_products_run_at_the_rate_of_their_type(time_streams: Timer, dtype: int, macs: str) -> None:
    timeline = time_streams([mmad(128, 256, 64, dtype)] * 10, kind="aic")
    each = 128 * 256 * 64 / NUMBER(f"timing.cube.macs_per_cycle.{macs}")
    idle, next_one = NUMBER("timing.cube.startup_idle_cycles"), NUMBER("timing.cube.startup_cycles")
    assert busy(timeline, "M") == pytest.approx(10 * each + idle + 9 * next_one, rel=0.01)


def test_sizes_are_rounded_up_to_whole_fractals(time_streams: Timer) -> None:
    odd, whole = ([mmad(m, 17, 33)] for m in (1, 16))
    assert busy(time_streams(odd, kind="aic"), "M") == busy(time_streams(whole, kind="aic"), "M")


def test_l0a_fills_twice_as_fast_as_l0b(time_streams: Timer) -> None:
    times = [busy(time_streams([load(space, 32768)], kind="aic"), "MTE1") for space in (L0A, L0B)]
    startup = NUMBER("timing.mte1.load_2d_startup_cycles")
    assert times[0] - startup == pytest.approx(128, abs=2)
    assert times[1] - startup == pytest.approx(256, abs=2)


def test_every_unrolling_load_begins_anew(time_streams: Timer) -> None:
    timeline = time_streams([unroll(L0A, 128, 64), unroll(L0B, 64, 256)] * 5, kind="aic")
    startup = NUMBER("timing.mte1.load_3d_startup_cycles")
    assert busy(timeline, "MTE1") == pytest.approx(5 * (64 + 256 + 2 * startup))


def test_a_cube_core_reads_l2_faster_than_a_vector_core(time_streams: Timer) -> None:
    def spent(copies: int, kind: str) -> float:
        stream = [copy_in(0, 65536, 1, 0)] * copies
        return busy(time_streams(stream, kind=kind, numbers={"timing.l2.has_inputs": 1.0}), "MTE2")

    cube, vector = (spent(2, kind) - spent(1, kind) for kind in ("aic", "aiv"))
    startup = NUMBER("timing.mte2.instruction_cycles")
    wider = NUMBER("timing.mte2.l2_hit_aic_bytes_per_cycle")
    wider /= NUMBER("timing.mte2.l2_hit_aiv_bytes_per_cycle")
    assert (vector - startup) / (cube - startup) == pytest.approx(wider, rel=0.01)


def test_rows_off_the_alignment_cost_global_memory_one_more_unit_each(time_streams: Timer) -> None:
    def cores(pitch: int) -> list[list[Instr]]:
        # Far apart, so that no two rows share a unit.
        return [
            [copy_in((core << 32) + i * 64 * pitch, 2048, 64, pitch, space=UB) for i in range(8)]
            for core in range(48)
        ]

    aligned, off = (time_streams(*cores(pitch)).total_cycles for pitch in (24576, 24574))
    assert off / aligned == pytest.approx((2048 + 512) / 2048, rel=0.05)


def test_cores_that_read_one_line_in_step_are_served_one_after_the_other(
    time_streams: Timer,
) -> None:
    def cycles(count: int, *, past_l2: bool) -> float:
        stream = [copy_in(i * 65536, 128, 128, 512, space=UB) for i in range(20)]
        for copy in stream:
            copy["src"][0]["bypasses_l2"] = past_l2
        alone = {"timing.l2.same_address_cycles": 0.0}
        streams = [stream] * count
        served = time_streams(*streams).total_cycles
        return served - time_streams(*streams, numbers=alone).total_cycles

    # Past L2 each waits for all the others; of those that L2 serves a few are in the way.
    assert cycles(48, past_l2=True) / cycles(24, past_l2=True) == pytest.approx(47 / 23, rel=0.15)
    assert cycles(48, past_l2=False) < 0.3 * cycles(48, past_l2=True)
    assert 0 < cycles(2, past_l2=False) < cycles(24, past_l2=False)


def test_a_read_that_l2_serves_is_there_sooner(time_streams: Timer) -> None:
    def latency(has_inputs: float) -> float:
        numbers = {"timing.l2.has_inputs": has_inputs}
        return busy(time_streams([copy_in(0, 512, 1, 0)], kind="aic", numbers=numbers), "MTE2")

    saved = NUMBER("timing.mte2.startup_cycles") - NUMBER("timing.mte2.l2_hit_startup_cycles")
    assert latency(0) - latency(1) == pytest.approx(saved, abs=15)


def test_fix_follows_m_and_m_follows_fix_under_unit_flags(time_streams: Timer) -> None:
    def block(address: int, unit_flag: int) -> list[Instr]:
        product = mmad(128, 256, 64)
        product["dst"]["address"] = address
        product["product"]["unit_flag"] = unit_flag
        out = {
            "op": "Fixpipe",
            "pipe": "FIX",
            "dst": {"space": GM, "address": 0, "dtype": FLOAT16},
            "src": [{"space": L0C, "dtype": FLOAT32, "address": address}],
            "fixpipe": {"m": 128, "n": 256, "is_nd": True, "unit_flag": unit_flag},
        }
        flags = [
            {"op": op, "pipe": pipe, "peer_pipe": peer}
            for pipe, peer in (("M", "FIX"), ("FIX", "M"))
            for op in ("SetFlag", "WaitFlag")
        ]
        return [product, out] if unit_flag else [product, *flags[:2], out, *flags[2:]]

    blocks = 6
    turns, units = (
        time_streams(block(0, flag) * blocks, kind="aic").total_cycles for flag in (0, 3)
    )
    halves = time_streams((block(0, 3) + block(0x10000, 3)) * (blocks // 2), kind="aic")
    each = 128 * 256 * 64 / NUMBER("timing.cube.macs_per_cycle.fp16")
    each += NUMBER("timing.cube.startup_idle_cycles") + NUMBER("timing.fixpipe.startup_cycles")
    # What M takes is hidden behind FIX, and so are the ways from one to the other.
    assert turns - units == pytest.approx(blocks * each, rel=0.1)
    assert halves.total_cycles <= units


def test_a_cube_core_reads_global_memory_faster_than_a_vector_core(time_streams: Timer) -> None:
    # It had the vector core's rate: public products of one block a core were predicted 31 to 39 %
    # too slow.
    def spent(copies: int, kind: str) -> float:
        stream = [copy_in(i << 20, 65536, 1, 0) for i in range(copies)]
        return busy(time_streams(stream, kind=kind), "MTE2")

    cube, vector = (spent(9, kind) - spent(1, kind) for kind in ("aic", "aiv"))
    startup = 8 * NUMBER("timing.mte2.instruction_cycles")
    rates = NUMBER("timing.mte2.aic_bytes_per_cycle"), NUMBER("timing.mte2.bytes_per_cycle")
    assert (vector - startup) / (cube - startup) == pytest.approx(rates[0] / rates[1], rel=0.01)


@pytest.mark.parametrize(("pitch", "is_slow"), [(8192, False), (8000, True), (8190, True)])
def test_rows_of_an_odd_pitch_become_nz_slowly_from_l2_too(
    time_streams: Timer, pitch: int, is_slow: bool
) -> None:
    # From L2 only rows off 32 bytes were slow: a product with rows of 8000 bytes was predicted in
    # 264 of 445 us.
    def spent(copies: int) -> float:
        tile = {**copy_in(0, 32, 128, pitch), "op": "DataCopyNd2Nz"}
        tile |= {"plane_count": 16, "last_plane_bytes": 32}
        numbers = {"timing.l2.has_inputs": 1.0}
        return busy(time_streams([tile] * copies, kind="aic", numbers=numbers), "MTE2")

    rate = 128 * 512 / (spent(2) - spent(1) - NUMBER("timing.mte2.instruction_cycles"))
    slow = NUMBER("timing.mte2.nd_to_nz_unaligned_bytes_per_cycle")
    assert rate == pytest.approx(slow, rel=0.02) if is_slow else rate > 4 * slow
