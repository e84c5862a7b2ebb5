"""Timelines of launches on the modelled chip: totals, trace and summary."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.profiling.session import Profile, profile, profile_all
    from opkit.profiling.summary import summary_text
    from opkit.profiling.timeline import (
        BAND,
        PIPES,
        CoreTime,
        LineTime,
        PipeTime,
        Timeline,
        TimelineEvent,
    )
    from opkit.profiling.trace import trace_object, trace_text

__all__ = [
    "BAND",
    "PIPES",
    "CoreTime",
    "LineTime",
    "PipeTime",
    "Profile",
    "Timeline",
    "TimelineEvent",
    "profile",
    "profile_all",
    "summary_text",
    "trace_object",
    "trace_text",
]

_HOMES = {
    "session": ("Profile", "profile", "profile_all"),
    "summary": ("summary_text",),
    "timeline": ("BAND", "PIPES", "CoreTime", "LineTime", "PipeTime", "Timeline", "TimelineEvent"),
    "trace": ("trace_object", "trace_text"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value
