"""Times by operator, module and line of launches whose places are known."""

from __future__ import annotations

import pytest

from opkit.profiling import CpuCall, ModelProfile, Place, PlaceTime, TimedLaunch, model_profile

HEAD = Place(("Net", "Net.head"), "/somewhere/net.py", 4)
BODY = Place(("Net",), "/somewhere/net.py", 9)
HEAD_BACKWARD = Place(HEAD.modules, HEAD.file, HEAD.line, is_backward=True)
STEP = Place((), "/somewhere/train.py", 20)
NOWHERE = Place((), "", 0)


@pytest.fixture
def profile() -> ModelProfile:
    launches = [
        TimedLaunch("mm", HEAD, 4.0),
        TimedLaunch("add", BODY, 1.0),
        TimedLaunch("mm", HEAD_BACKWARD, 6.0),
        TimedLaunch("add", STEP, 2.0),
    ]
    return model_profile(launches, [CpuCall("sort", HEAD, 30.0), CpuCall("sort", NOWHERE, 5.0)])


def rows(found: tuple[PlaceTime, ...]) -> dict[str, tuple[int, float, float, float, int]]:
    return {
        row.name: (row.launches, row.task_us, row.own_us, row.backward_us, row.cpu_calls)
        for row in found
    }


def test_a_module_has_the_time_of_its_parts(profile: ModelProfile) -> None:
    assert rows(profile.modules) == {
        "Net": (3, 11.0, 1.0, 6.0, 1),
        "Net.head": (2, 10.0, 10.0, 6.0, 1),
        "(outside of modules)": (1, 2.0, 2.0, 0.0, 1),
    }
    assert profile.modules[0].name == "Net"


def test_a_line_has_its_backward_too(profile: ModelProfile) -> None:
    assert rows(profile.lines) == {
        "net.py:4": (2, 10.0, 10.0, 6.0, 1),
        "train.py:20": (1, 2.0, 2.0, 0.0, 0),
        "net.py:9": (1, 1.0, 1.0, 0.0, 0),
        "(no line of Python)": (0, 0.0, 0.0, 0.0, 1),
    }


def test_operators_and_totals_keep_the_cpu_apart(profile: ModelProfile) -> None:
    assert [row.name for row in profile.operators] == ["mm", "add", "sort"]
    assert (profile.launches, profile.task_us) == (4, 13.0)
    assert (profile.cpu_calls, profile.cpu_host_us) == (2, 35.0)
