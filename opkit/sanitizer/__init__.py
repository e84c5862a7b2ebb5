"""Findings about kernels: what the emulator's detectors and faults report, grouped and filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.sanitizer.classes import CLASSES, TOOLS, FindingClass, find_class
    from opkit.sanitizer.finding import (
        Finding,
        Gap,
        Location,
        fault_finding,
        group_findings,
        located,
        located_findings,
    )
    from opkit.sanitizer.mutants import Mutant, MutantKind, mutants_of
    from opkit.sanitizer.mutation import (
        Caught,
        Judgement,
        MutantResult,
        MutationReport,
        find_mutants,
        run_mutants,
    )
    from opkit.sanitizer.outputs import allocations, unwritten_outputs, written_inputs
    from opkit.sanitizer.page import check_page
    from opkit.sanitizer.program import check_program, check_script, findings_in, program_options
    from opkit.sanitizer.report import (
        finding_object,
        finding_text,
        gap_text,
        junit_xml,
        report_object,
        sarif_object,
    )
    from opkit.sanitizer.run import (
        CaseFindings,
        CheckedCase,
        CheckReport,
        check_case,
        check_cases,
        check_report,
        lost_case,
        retold_case,
    )
    from opkit.sanitizer.session import Check, chosen_tools
    from opkit.sanitizer.settings import CheckSettings
    from opkit.sanitizer.suppressions import Suppressions, baseline_text, read_suppressions
    from opkit.sanitizer.witness import Witness

__all__ = [
    "CLASSES",
    "TOOLS",
    "CaseFindings",
    "Caught",
    "Check",
    "CheckReport",
    "CheckSettings",
    "CheckedCase",
    "Finding",
    "FindingClass",
    "Gap",
    "Judgement",
    "Location",
    "Mutant",
    "MutantKind",
    "MutantResult",
    "MutationReport",
    "Suppressions",
    "Witness",
    "allocations",
    "baseline_text",
    "check_case",
    "check_cases",
    "check_page",
    "check_program",
    "check_report",
    "check_script",
    "chosen_tools",
    "fault_finding",
    "find_class",
    "find_mutants",
    "finding_object",
    "finding_text",
    "findings_in",
    "gap_text",
    "group_findings",
    "junit_xml",
    "located",
    "located_findings",
    "lost_case",
    "mutants_of",
    "program_options",
    "read_suppressions",
    "report_object",
    "retold_case",
    "run_mutants",
    "sarif_object",
    "unwritten_outputs",
    "written_inputs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "classes": ("CLASSES", "TOOLS", "FindingClass", "find_class"),
        "finding": (
            *("Finding", "Gap", "Location", "fault_finding", "group_findings"),
            *("located", "located_findings"),
        ),
        "mutants": ("Mutant", "MutantKind", "mutants_of"),
        "mutation": (
            "Caught",
            "Judgement",
            "MutantResult",
            "MutationReport",
            "find_mutants",
            "run_mutants",
        ),
        "outputs": ("allocations", "unwritten_outputs", "written_inputs"),
        "page": ("check_page",),
        "program": ("check_program", "check_script", "findings_in", "program_options"),
        "report": (
            "finding_object",
            "finding_text",
            "gap_text",
            "junit_xml",
            "report_object",
            "sarif_object",
        ),
        "run": (
            "CaseFindings",
            "CheckReport",
            "CheckedCase",
            "check_case",
            "check_cases",
            "check_report",
            "lost_case",
            "retold_case",
        ),
        "session": ("Check", "chosen_tools"),
        "settings": ("CheckSettings",),
        "suppressions": ("Suppressions", "baseline_text", "read_suppressions"),
        "witness": ("Witness",),
    },
)
