"""Parts that commands are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .build_library import report_library
    from .cases import OpenProject, choose_cases, open_project
    from .check_cases import run_checks
    from .check_mutants import mutate_project, show_mutation
    from .cmake import cmake_arguments
    from .compat_build import chosen_operators, report_builds
    from .compat_mutants import Ran, mutate_samples
    from .compat_unit_tests import report_unit_tests
    from .compat_worker import Tried, compat_work
    from .gen_modes import (
        Existing,
        check_prototype,
        enclosing_project,
        find_existing,
        merged_prototype,
        operator_notes,
        print_prototype,
        require_existing,
    )
    from .profile_output import (
        Outputs,
        made_text,
        model_of,
        show_difference,
        show_fault,
        show_timelines,
    )
    from .sizes import read_sizes
    from .tune_others import program_subject_of, tune_compiled
    from .tune_search import Search

__all__ = [
    "Existing",
    "OpenProject",
    "Outputs",
    "Ran",
    "Search",
    "Tried",
    "check_prototype",
    "choose_cases",
    "chosen_operators",
    "cmake_arguments",
    "compat_work",
    "enclosing_project",
    "find_existing",
    "made_text",
    "merged_prototype",
    "model_of",
    "mutate_project",
    "mutate_samples",
    "open_project",
    "operator_notes",
    "print_prototype",
    "program_subject_of",
    "read_sizes",
    "report_builds",
    "report_library",
    "report_unit_tests",
    "require_existing",
    "run_checks",
    "show_difference",
    "show_fault",
    "show_mutation",
    "show_timelines",
    "tune_compiled",
]

__getattr__ = lazy_names(
    __name__,
    {
        "build_library": ("report_library",),
        "cases": (
            "OpenProject",
            "choose_cases",
            "open_project",
        ),
        "check_cases": ("run_checks",),
        "check_mutants": (
            "mutate_project",
            "show_mutation",
        ),
        "cmake": ("cmake_arguments",),
        "sizes": ("read_sizes",),
        "compat_build": (
            "chosen_operators",
            "report_builds",
        ),
        "compat_mutants": (
            "Ran",
            "mutate_samples",
        ),
        "compat_unit_tests": ("report_unit_tests",),
        "compat_worker": (
            "Tried",
            "compat_work",
        ),
        "gen_modes": (
            "Existing",
            "check_prototype",
            "enclosing_project",
            "find_existing",
            "operator_notes",
            "merged_prototype",
            "print_prototype",
            "require_existing",
        ),
        "profile_output": (
            "Outputs",
            "made_text",
            "model_of",
            "show_difference",
            "show_fault",
            "show_timelines",
        ),
        "tune_others": (
            "program_subject_of",
            "tune_compiled",
        ),
        "tune_search": ("Search",),
    },
)
