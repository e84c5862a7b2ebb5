"""Timelines that print and show themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opkit.profiling.page import fragment
from opkit.profiling.summary import summary_text
from opkit.profiling.timeline import (
    CoreTime,
    LineTime,
    ScalarSpan,
    Timeline,
    TimelineEvent,
    TimelineWait,
)

__all__ = ["ShownTimeline", "read_timeline"]


@dataclass(frozen=True, repr=False)
class ShownTimeline(Timeline):
    """A timeline as sessions give it: `print` and notebooks show its summary."""

    def __str__(self) -> str:
        return summary_text(self)

    def _repr_html_(self) -> str:
        return fragment(self)


def read_timeline(record: Mapping[str, Any]) -> ShownTimeline:
    """Return a launch's timeline from the object that the emulator's JSON text holds."""
    order = sorted(range(len(record["lines"])), key=lambda i: -record["lines"][i]["cycles"])
    place = {old: new for new, old in enumerate(order)}
    return ShownTimeline(
        **{
            **record,
            "cores": tuple(CoreTime(**core) for core in record["cores"]),
            "lines": tuple(LineTime(**record["lines"][i]) for i in order),
            "events": tuple(
                TimelineEvent(core, place[line], *numbers)
                for core, line, *numbers in record["events"]
            ),
            "waits": tuple(
                TimelineWait(core, pipe, reason, cause, start, end, place.get(line, -1), last)
                for core, pipe, reason, cause, start, end, line, last in record.get("waits", ())
            ),
            "scalar": tuple(ScalarSpan(*span) for span in record.get("scalar", ())),
        }
    )
