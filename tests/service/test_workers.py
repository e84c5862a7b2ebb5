"""Versions in worker processes: what a crash, a hang, a leak and a wrong answer cost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit.errors import UsageError

X = np.arange(4, dtype=np.float32)
OpenService = Callable[..., Any]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("segfault", "crash"), ("hang", "hang"), ("nan", "wrong"), ("grow", "crash|memory|error")],
)
def test_a_version_that_goes_astray_costs_attempts_and_no_call(
    open_service: OpenService, mode: str, kind: str
) -> None:
    service = open_service(
        {"v2": f"{mode} 2", "v1": "good"},
        isolation="process",
        limits={
            # Only a hang has to wait for the end of it, however busy the machine is.
            "attempt_seconds": 5 if mode == "hang" else 120,
            "call_seconds": 300,
            "memory_bytes": 256 << 20,
        },
        checks={"sample_rate": 0, "first_calls": 0},
        breaker={"failures": 1},
    )
    answers = [service.call("twice", [X]) for _ in range(10)]
    assert all(answer.outputs[0][0].tolist() == (2 * X).tolist() for answer in answers)
    assert [answer.version for answer in answers] == ["v2"] * 2 + ["v1"] * 8
    assert answers[2].attempts[0].kind in kind.split("|"), answers[2].attempts
    # After its breaker has opened no call waits for it.
    assert all(answer.attempts == () for answer in answers[3:])
    assert not service.operator("twice").versions["v2"].breaker.is_closed


def test_after_the_death_of_a_reference_no_wrong_answer_goes_out_and_calls_wait_for_the_next(
    open_service: OpenService,
) -> None:
    # Calls used to fail, or to get samples that nobody had looked at, until another was started.
    service = open_service(
        {"v2": "wrong 1", "v1": "good"},
        isolation="process",
        checks={"sample_rate": 1, "first_calls": 1},
    )
    reference = service.operator("twice").reference
    assert service.call("twice", [X]).version == "v2"
    (worker,) = reference._all
    os.kill(worker.pid, signal.SIGKILL)
    answers = [service.call("twice", [X]) for _ in range(3)]
    assert all(answer.outputs[0][0].tolist() == (2 * X).tolist() for answer in answers)
    assert all(answer.checked for answer in answers)
    assert reference.restarts == 1
    assert not service.operator("twice").versions["v2"].breaker.is_closed


def test_a_worker_that_was_killed_is_replaced_and_the_version_comes_back(
    open_service: OpenService,
) -> None:
    breaker = {"open_seconds": 0.01, "trials": 1}
    service = open_service({"v1": "good"}, isolation="process", breaker=breaker)
    pool = service.operator("twice").versions["v1"].runner
    (worker,) = pool._all
    os.kill(worker.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    versions = [""]
    while (pool.restarts < 1 or versions[-1] != "v1") and time.monotonic() < deadline:
        answer = service.call("twice", [X])
        assert answer.outputs[0][0].tolist() == (2 * X).tolist()
        versions.append(answer.version)
        time.sleep(0.05)
    assert versions[-1] == "v1"


def test_closing_leaves_no_process(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, isolation="process")
    workers = [worker for runner in service._runners() for worker in runner._all]
    assert len(workers) == 2
    service.close()
    assert not any(worker.is_alive for worker in workers)


def test_modelled_times_are_asked_for_once_and_kept(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, isolation="process")
    service.call("twice", [X])
    service.settle()
    served = service.operator("twice").versions["v1"]
    assert set(served.modelled) == {"float32[4]"}
    kept = service._store.modelled(served.version.digest, "Twice")
    assert kept == served.modelled
    service.call("twice", [X])
    figures = service.operator_report("twice")["versions"][0]
    assert figures["device_us"] == kept["float32[4]"].task_us > 0
    assert figures["energy_uj"] > 0


def test_modelled_choice_names_its_figures(open_service: OpenService) -> None:
    service = open_service(
        {"v1": "good", "v2": "good"}, isolation="process", deployment={"choice": "modelled"}
    )
    service.call("twice", [X])
    service.settle()
    answer = service.call("twice", [X])
    assert "us" in answer.reason and "modelled for float32[4]" in answer.reason


def test_big_tensors_grow_the_shared_memory(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, isolation="process")
    large = np.arange(1_500_000, dtype=np.float32)
    answer = service.call("twice", [large], seconds=120)
    assert np.array_equal(answer.outputs[0][0], 2 * large)
    assert answer.version == "v1"


def test_attributes_that_are_too_long_are_the_callers_fault(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, isolation="process")
    with pytest.raises(UsageError, match="too long for a call"):
        service.call("twice", [X], {"a": "x" * 200_000})
    assert service.call("twice", [X]).version == "v1"


def test_a_program_is_a_version_and_its_own_reference(tmp_path: Any) -> None:
    from opkit.service import Service, ServiceSettings

    program = tmp_path / "scale.py"
    program.write_text('def scale(x: "float32[N]"):\n    return x * 3.0 + 1.0\n')
    settings = {
        "store": tmp_path / "store",
        "operators": [
            {
                "name": "scale",
                "versions": {"v1": {"source": str(program)}},
                "checks": {"sample_rate": 1},
                "limits": {"attempt_seconds": 60, "call_seconds": 60},
            }
        ],
    }
    with Service(ServiceSettings.model_validate(settings)) as service:
        assert service.wait_until_ready(120)
        answer = service.call("scale", [X])
        assert (answer.version, answer.checked) == ("v1", True)
        assert answer.outputs[0][0].tolist() == (3 * X + 1).tolist()
        with pytest.raises(UsageError):
            service.call("scale", [X.astype(np.int32)])
