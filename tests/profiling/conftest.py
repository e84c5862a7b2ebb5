"""The model on instruction streams that no kernel issues, and one launch's record."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from opkit.profiling import Timeline
from opkit.profiling.shown import read_timeline


@pytest.fixture(scope="session")
def time_streams() -> Callable[..., Timeline]:
    """Return a function that times one list of instructions a core, Ascend910B2 by default."""
    emulator = importlib.import_module("opkit.emulator._emulator")

    def time(
        *cores: list[dict[str, Any]],
        event_limit: int = 1_000_000,
        chip: str = "Ascend910B2",
        kind: str = "aiv",
        lift_limits: bool = False,
        numbers: dict[str, float] | None = None,
    ) -> Timeline:
        # Every core begins with as much scalar work as the chip says; the laws are clearer without.
        given = {"timing.launch.entry_cycles": 0.0, **(numbers or {})}
        text = emulator.KeptLaunch.of(list(cores), kind).time(
            chip, event_limit, lift_limits=lift_limits, numbers=list(given.items())
        )
        return read_timeline(json.loads(text))

    return time


@pytest.fixture
def record() -> dict[str, Any]:
    """Return a small launch as the emulator describes it: two cores, three lines."""
    idle = dict.fromkeys(("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"), 0.0)
    traffic = {"gm_read_bytes": 4096, "gm_write_bytes": 0, "l2_read_hit_bytes": 1024}
    core = {
        **{"sub_block": 0, "kind": "aiv", "start_cycle": 0.0, "wait_cycles": idle},
        **{"instructions": {**idle, "V": 3}, **traffic, "l2_write_hit_bytes": 0},
        **{"hbm_read_bytes": 3072, "hbm_write_bytes": 0},
    }
    return {
        "kernel": "gelu_custom",
        "chip": "Ascend910B2",
        "block_dim": 2,
        "clock_mhz": 1000.0,
        "launch_us": 1.0,
        "task_us": 3.0,
        "total_cycles": 2000.0,
        "cores": [
            {**core, "block": 0, "end_cycle": 2000.0, "busy_cycles": {**idle, "V": 1500.0}},
            {**core, "block": 1, "end_cycle": 1000.0, "busy_cycles": {**idle, "MTE2": 1000.0}},
        ],
        "lines": [
            _line(12, "DataCopy", "MTE2", count=1, cycles=1000.0, bytes=4096, **_COPY_IN),
            _line(20, "Add", "V", count=3, cycles=1500.0, conflict_cycles=750.0),
        ],
        "events": [(1, 0, 0.0, 1000.0, 4096), (0, 1, 500.0, 2000.0, 0)],
        "events_dropped": 2,
        "gm_read_bytes": 4096,
        "gm_write_bytes": 0,
        "l2_hit_bytes": 1024,
        "hbm_read_bytes": 3072,
        "hbm_write_bytes": 0,
        "l2_lost_bytes": 0,
        "ub_bytes_used": 65536,
        "lifted_cycles": {},
    }


_COPY_IN = {"source": "GM", "target": "UB", "bursts": 1}


def _line(line: int, instruction: str, pipe: str, **fields: float | str) -> dict[str, Any]:
    empty: dict[str, Any] = {"count": 0, "cycles": 0.0, "conflict_cycles": 0.0, "bytes": 0}
    empty |= {"source": "", "target": "", "bursts": 0, "unaligned": 0, "operations": 0}
    where = {"file": "op_kernel/gelu.cpp", "line": line, "instruction": instruction, "pipe": pipe}
    return {**empty, **where, **fields}
