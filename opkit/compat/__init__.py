"""Whether other people's Ascend C runs here: their samples built and run, their names looked up."""

from __future__ import annotations

from opkit.compat.api import ApiName, api_names
from opkit.compat.declared import Declared, read_declared, read_refused
from opkit.compat.discover import Sample, find_samples
from opkit.compat.operator_scan import OperatorScan, scan_operators
from opkit.compat.outcome import Outcome, Verdict, says_fail, says_pass
from opkit.compat.run import Machine, Task, plan, try_task
from opkit.compat.scan import KernelNames, ScanReport, Want, find_kernels, names_used, scan, wants
from opkit.compat.unit_tests import (
    UnitTest,
    UnitTestOutcome,
    find_unit_tests,
    needs_googletest,
    try_unit_test,
)

__all__ = [
    "ApiName",
    "Declared",
    "KernelNames",
    "Machine",
    "OperatorScan",
    "Outcome",
    "Sample",
    "ScanReport",
    "Task",
    "UnitTest",
    "UnitTestOutcome",
    "Verdict",
    "Want",
    "api_names",
    "find_kernels",
    "find_samples",
    "find_unit_tests",
    "names_used",
    "needs_googletest",
    "plan",
    "read_declared",
    "read_refused",
    "says_fail",
    "says_pass",
    "scan",
    "scan_operators",
    "try_task",
    "try_unit_test",
    "wants",
]
