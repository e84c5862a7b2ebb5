"""What a service tells besides its answers."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from opkit import log
from opkit.service.telemetry import EventLog


def test_events_are_in_the_log_of_all_components(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path))
    monkeypatch.setenv("ASCEND_GLOBAL_LOG_LEVEL", "1")
    events = EventLog()
    events.tell("deployed", name="gelu", version=2)
    events.tell("breaker opened", level=logging.WARNING, name="gelu")
    events.tell("quiet", level=logging.DEBUG)
    first, second = log.read_log()
    assert (first.component, first.level, first.message) == ("SERVICE", "INFO", "deployed")
    assert first.fields == {"name": "gelu", "version": 2}
    assert second.level == "WARNING"
