"""Timelines of launches on the modelled chip: totals, trace and summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.profiling.advice import Advice, advise
    from opkit.profiling.csv_files import csv_texts
    from opkit.profiling.difference import (
        Change,
        ProfileDifference,
        SourceChange,
        compare_reports,
        read_report,
    )
    from opkit.profiling.operators import OperatorCount, operator_files, write_operator_files
    from opkit.profiling.page import (
        PageParts,
        difference_page,
        html_page,
        page_parts,
    )
    from opkit.profiling.page_data import timeline_data
    from opkit.profiling.places import (
        CpuCall,
        ModelProfile,
        Place,
        PlaceTime,
        TimedLaunch,
        model_profile,
    )
    from opkit.profiling.program import profile_program, profile_script
    from opkit.profiling.roofline import (
        Ceiling,
        RooflinePoint,
        ceilings,
        roofline_points,
    )
    from opkit.profiling.session import Profile, profile, profile_all
    from opkit.profiling.shown import read_timeline
    from opkit.profiling.source_view import report_sources
    from opkit.profiling.summary import summary_text, time_text
    from opkit.profiling.timeline import (
        PIPES,
        SHORT_TASK_US,
        CoreTime,
        LineTime,
        PipeTime,
        ScalarSpan,
        Timeline,
        TimelineEvent,
        TimelineWait,
        band_key,
    )
    from opkit.profiling.trace import trace_object, trace_text

__all__ = [
    "PIPES",
    "SHORT_TASK_US",
    "Advice",
    "Ceiling",
    "Change",
    "CoreTime",
    "CpuCall",
    "LineTime",
    "ModelProfile",
    "OperatorCount",
    "PageParts",
    "PipeTime",
    "Place",
    "PlaceTime",
    "Profile",
    "ProfileDifference",
    "RooflinePoint",
    "ScalarSpan",
    "SourceChange",
    "TimedLaunch",
    "Timeline",
    "TimelineEvent",
    "TimelineWait",
    "advise",
    "band_key",
    "ceilings",
    "compare_reports",
    "csv_texts",
    "difference_page",
    "html_page",
    "model_profile",
    "operator_files",
    "page_parts",
    "profile",
    "profile_all",
    "profile_program",
    "profile_script",
    "read_report",
    "read_timeline",
    "report_sources",
    "roofline_points",
    "summary_text",
    "time_text",
    "timeline_data",
    "trace_object",
    "trace_text",
    "write_operator_files",
]

__getattr__ = lazy_names(
    __name__,
    {
        "advice": ("Advice", "advise"),
        "csv_files": ("csv_texts",),
        "difference": (
            *("Change", "ProfileDifference", "SourceChange"),
            *("compare_reports", "read_report"),
        ),
        "operators": ("OperatorCount", "operator_files", "write_operator_files"),
        "page": (
            "PageParts",
            "difference_page",
            "html_page",
            "page_parts",
        ),
        "page_data": ("timeline_data",),
        "places": (
            "CpuCall",
            "ModelProfile",
            "Place",
            "PlaceTime",
            "TimedLaunch",
            "model_profile",
        ),
        "program": ("profile_program", "profile_script"),
        "roofline": ("Ceiling", "RooflinePoint", "ceilings", "roofline_points"),
        "session": ("Profile", "profile", "profile_all"),
        "shown": ("read_timeline",),
        "source_view": ("report_sources",),
        "summary": ("summary_text", "time_text"),
        "timeline": (
            "PIPES",
            "SHORT_TASK_US",
            "CoreTime",
            "LineTime",
            "PipeTime",
            "Timeline",
            "ScalarSpan",
            "TimelineEvent",
            "TimelineWait",
            "band_key",
        ),
        "trace": ("trace_object", "trace_text"),
    },
)
