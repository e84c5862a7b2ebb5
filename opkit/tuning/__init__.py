"""Sizes and variants of kernels, searched on the timing model, verified and kept in a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.tuning.compiled import compiled_subject, save_choices
    from opkit.tuning.measurement import Measurement, PipeLoad, Relief
    from opkit.tuning.page import landscape_page
    from opkit.tuning.program import SourceKnob, program_subject, read_source_knob
    from opkit.tuning.project import project_state, project_subject, save_project_row
    from opkit.tuning.report import report_object, report_text
    from opkit.tuning.search import Budget
    from opkit.tuning.session import Subject, Trial, TuningReport, tune
    from opkit.tuning.space import Knob, Space

__all__ = [
    "Budget",
    "Knob",
    "Measurement",
    "PipeLoad",
    "Relief",
    "SourceKnob",
    "Space",
    "Subject",
    "Trial",
    "TuningReport",
    "compiled_subject",
    "landscape_page",
    "program_subject",
    "project_state",
    "project_subject",
    "read_source_knob",
    "report_object",
    "report_text",
    "save_choices",
    "save_project_row",
    "tune",
]

_HOMES = {
    "compiled": ("compiled_subject", "save_choices"),
    "program": ("SourceKnob", "program_subject", "read_source_knob"),
    "measurement": ("Measurement", "PipeLoad", "Relief"),
    "project": ("project_state", "project_subject", "save_project_row"),
    "page": ("landscape_page",),
    "report": ("report_object", "report_text"),
    "search": ("Budget",),
    "session": ("Subject", "Trial", "TuningReport", "tune"),
    "space": ("Knob", "Space"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
