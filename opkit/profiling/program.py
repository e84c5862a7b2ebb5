"""Profiling whole programs and scripts."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from opkit import runtime
from opkit.errors import UsageError
from opkit.profiling.places import Place
from opkit.profiling.session import DEFAULT_EVENT_LIMIT, Profile
from opkit.profiling.shown import read_timeline
from opkit.profiling.timeline import Timeline

__all__ = ["profile_program", "profile_script"]


def profile_program(
    program: Path,
    arguments: Sequence[str],
    *,
    chip: str | None = None,
    kernel: str = "*",
    event_limit: int = DEFAULT_EVENT_LIMIT,
    lift_limits: bool = True,
    timing_only: bool = False,
    quiet_stdout: bool = False,
    allow_raw_writes: bool = False,
    timeout_seconds: float = 0.0,
) -> tuple[list[Timeline], int]:
    """Run a program and return the timelines of its launches, and its exit code.

    Args:
        chip: the one that it was compiled for by default.
        kernel: only launches of kernels of this name; `*` and `?` match anything.
        timing_only: see `Profile`.
        quiet_stdout: what the program prints goes to stderr.
        allow_raw_writes: a launch that changes device memory past all instructions is no fault.
        timeout_seconds: see `runtime.time_limit`.
    Raises:
        UsageError: there is no such program, or it left no timelines: it is not linked to opkit, or
            ended in a way that leaves no time to write them; or it launched no such kernel.
    """
    found = runtime.find_program(program)
    with tempfile.TemporaryDirectory(prefix="opkit-profile-") as name:
        options = {
            "chip": chip,
            "profile_events": event_limit,
            "profile_limits": int(lift_limits),
            "profile_timing_only": int(timing_only) or None,
            "profile_report": name,
            "finds_raw_writes": None if allow_raw_writes else 1,
            **runtime.timeout_option(timeout_seconds),
        }
        output = sys.stderr if quiet_stdout else None
        code = runtime.run_program(found, arguments, options, output=output)
        texts = [path.read_text("utf-8", "replace") for path in sorted(Path(name).glob("*.json"))]
    if not texts:
        ended = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        raise UsageError(
            f"{program} {ended} and has left no times",
            help='link it with "opkit cc" of this version, and let it end by return or exit',
        )
    timelines: list[Timeline] = [
        read_timeline(record) for text in texts for record in json.loads(text)
    ]
    return _chosen(timelines, kernel, program.name), code


def profile_script(
    script: Path,
    arguments: Sequence[str],
    *,
    kernel: str = "*",
    event_limit: int = DEFAULT_EVENT_LIMIT,
    lift_limits: bool = True,
    timing_only: bool = False,
    places: Mapping[int, Place] | None = None,
) -> tuple[list[Timeline], int]:
    """Run a Python script in this process and return the timelines of its launches, and its code.

    Launches by way of PyTorch count: they run on the same device.

    Args:
        timing_only: see `Profile`.
        places: filled while the script runs: where its launches come from, by their number.
    Raises:
        UsageError: it launched no such kernel.
    """
    with Profile(
        event_limit=event_limit, lift_limits=lift_limits, timing_only=timing_only
    ) as session:
        code = runtime.run_script(script, arguments)
    number = code if isinstance(code, int) else int(code is not None)
    known = {} if places is None else places
    timelines = [
        replace(timeline, place=known.get(at)) for at, timeline in enumerate(session.timelines)
    ]
    return _chosen(timelines, kernel, script.name), number


def _chosen(timelines: list[Timeline], kernel: str, name: str) -> list[Timeline]:
    kept = [timeline for timeline in timelines if fnmatchcase(timeline.kernel, kernel)]
    if kept:
        return kept
    if not timelines:
        raise UsageError(f"{name} launched no kernel, so there is nothing to time")
    names = ", ".join(dict.fromkeys(timeline.kernel for timeline in timelines))
    raise UsageError(f'{name} launched no kernel that matches "{kernel}"', help=f"it has {names}")
