"""Each piece of advice on a kernel that shows its pattern, against the kernel that follows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit.profiling import Advice, Profile, Timeline, advise

PAIRS = Path(__file__).with_name("advice_pairs.cpp")
TEXT = PAIRS.read_text("utf-8")

# Pattern: tiling key of the kernel that shows it, blocks, text of the line that it must name.
KERNELS = {
    "single-buffer": (0, 4, "DataCopy(a, gm.in"),
    "short-bursts": (2, 4, "DataCopyParams{16"),
    "small-copies": (4, 4, "DataCopy(place(0, length)"),
    "unaligned-rows": (6, 4, "gm.in[i * kTile + offset]"),
    "bank-conflicts": (8, 4, "Add(place(0x18000"),
    "element-loop": (10, 4, "to.SetValue(i"),
    "full-barriers": (12, 4, "PipeBarrier<PIPE_ALL>()"),
    "core-waits": (14, 8, "SyncAll()"),
    "same-addresses": (16, 24, "in[tile * kTile]"),
    "small-tiles": (18, 4, "DataCopy(a, gm.in"),
    "dependent-chain": (20, 4, "Muls(a, a"),
    "uneven-cores": (22, 48, ""),
    "late-copy-in": (40, 4, "DataCopy(a, gm.in"),
}

Timer = Callable[[int, int], Timeline]


@pytest.fixture(scope="module")
def timed(compile_kernel: Callable[..., object]) -> Timer:
    """Return a function that times the kernel of a tiling key on some blocks."""
    run = compile_kernel(TEXT)
    x = np.ones(48 * (4096 * 24 + 256), np.float16)
    y = np.zeros_like(x)

    def time(key: int, blocks: int) -> Timeline:
        with Profile(lift_limits=True) as session:
            run(x, y, block_dim=blocks, tiling_key=key)
        (timeline,) = session.timelines
        return timeline

    return time


def find(timeline: Timeline, pattern: str) -> Advice:
    found = {item.pattern: item for item in advise(timeline)}
    assert pattern in found, f"only {list(found)}"
    return found[pattern]


@pytest.mark.parametrize("pattern", KERNELS)
def test_following_the_advice_brings_the_gain_that_it_promised(timed: Timer, pattern: str) -> None:
    key, blocks, _ = KERNELS[pattern]
    before, after = timed(key, blocks), timed(key + 1, blocks)
    advice = find(before, pattern)
    assert before.task_us - after.task_us == pytest.approx(advice.gain_us, rel=0.2)


@pytest.mark.parametrize("pattern", KERNELS)
def test_a_kernel_that_follows_the_advice_does_not_get_it_again(timed: Timer, pattern: str) -> None:
    key, blocks, _ = KERNELS[pattern]
    before = find(timed(key, blocks), pattern)
    again = [item for item in advise(timed(key + 1, blocks)) if item.pattern == pattern]
    assert all(item.gain_us < 0.75 * before.gain_us for item in again)


@pytest.mark.parametrize("pattern", [name for name, (_, _, text) in KERNELS.items() if text])
def test_advice_names_the_line_that_shows_the_pattern(timed: Timer, pattern: str) -> None:
    key, blocks, text = KERNELS[pattern]
    advice = find(timed(key, blocks), pattern)
    prologue = 2  # lines that compile_kernel puts before the text
    assert text in TEXT.splitlines()[advice.line - 1 - prologue]


def test_idle_cores_are_worth_their_share_of_the_work(timed: Timer) -> None:
    before, after = timed(23, 12), timed(23, 48)
    advice = find(before, "idle-cores")
    assert "36 of 48 cores" in advice.finding
    assert before.task_us - after.task_us == pytest.approx(advice.gain_us, rel=0.1)


def test_a_tail_wave_is_worth_filling(timed: Timer) -> None:
    before, after = timed(23, 60), timed(23, 48)
    advice = find(before, "tail-wave")
    assert "fills only 12" in advice.finding
    assert before.task_us - after.task_us == pytest.approx(advice.gain_us, rel=0.1)


def test_gains_come_largest_first(timed: Timer) -> None:
    gains = [item.gain_us for item in advise(timed(4, 4))]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) > 1


def test_a_launch_timed_without_lifted_limits_gets_only_what_cores_show(timed: Timer) -> None:
    import dataclasses

    timeline = dataclasses.replace(timed(8, 4), lifted_cycles={})
    assert {item.pattern for item in advise(timeline)} <= {"idle-cores"}


def test_changes_name_the_numbers_of_the_chip() -> None:
    from opkit.chips import all_chips
    from opkit.profiling.advice import _PATTERNS, _facts

    facts = {chip.name: _facts(chip) for chip in all_chips()}
    for pattern in _PATTERNS:
        assert not [digits for digits in ("32", "128", "256", "512") if digits in pattern.change]
        for chip in facts.values():
            assert "{" not in pattern.change.format_map(chip)
    for chip in all_chips():
        sides = facts[chip.name]
        filled = sides["base_m"] * sides["base_n"] * 4
        assert filled <= chip.count("memory.l0c_bytes") < 2 * filled
    assert len({row["base_m"] for row in facts.values()}) > 1  # L0C is not of one size
