"""Timelines of launches on the modelled chip: totals, trace and summary."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.profiling.advice import Advice, advise
    from opkit.profiling.csv_files import csv_texts
    from opkit.profiling.difference import (
        Change,
        ProfileDifference,
        compare_reports,
        read_report,
    )
    from opkit.profiling.page import html_page
    from opkit.profiling.program import profile_program, profile_script
    from opkit.profiling.roofline import (
        Ceiling,
        RooflinePoint,
        ceilings,
        roofline_points,
    )
    from opkit.profiling.session import Profile, profile, profile_all
    from opkit.profiling.summary import summary_text, time_text
    from opkit.profiling.timeline import (
        BAND,
        PIPES,
        CoreTime,
        LineTime,
        PipeTime,
        Timeline,
        TimelineEvent,
        read_timeline,
    )
    from opkit.profiling.trace import trace_object, trace_text

__all__ = [
    "BAND",
    "PIPES",
    "Advice",
    "Ceiling",
    "Change",
    "CoreTime",
    "LineTime",
    "PipeTime",
    "Profile",
    "ProfileDifference",
    "RooflinePoint",
    "Timeline",
    "TimelineEvent",
    "advise",
    "ceilings",
    "compare_reports",
    "csv_texts",
    "html_page",
    "profile",
    "profile_all",
    "profile_program",
    "profile_script",
    "read_report",
    "read_timeline",
    "roofline_points",
    "summary_text",
    "time_text",
    "trace_object",
    "trace_text",
]

_HOMES = {
    "advice": ("Advice", "advise"),
    "csv_files": ("csv_texts",),
    "difference": ("Change", "ProfileDifference", "compare_reports", "read_report"),
    "page": ("html_page",),
    "program": ("profile_program", "profile_script"),
    "roofline": ("Ceiling", "RooflinePoint", "ceilings", "roofline_points"),
    "session": ("Profile", "profile", "profile_all"),
    "summary": ("summary_text", "time_text"),
    "timeline": (
        "BAND",
        "PIPES",
        "CoreTime",
        "LineTime",
        "PipeTime",
        "Timeline",
        "TimelineEvent",
        "read_timeline",
    ),
    "trace": ("trace_object", "trace_text"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value
