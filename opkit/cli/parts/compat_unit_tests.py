"""`opkit compat unit-tests`: kernel unit tests of a library, one line an operator."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.cli.console import Console
from opkit.errors import SetupError, UsageError
from opkit.selection import select_by_name

if TYPE_CHECKING:
    from opkit.compat import UnitTest, UnitTestOutcome, Verdict
    from opkit.sanitizer import Finding

__all__ = ["report_unit_tests"]


def report_unit_tests(
    console: Console,
    folder: Path,
    *,
    matching: str | None,
    jobs: int | None,
    seconds: float,
    check: bool,
) -> bool:
    """Try the tests below a folder, tell of each, and return whether none went wrong.

    Args:
        matching: an expression over operators' paths, such as `norm and not grad`; None: all.
    Raises:
        UsageError: there are none.
        SetupError: GoogleTest is missing.
    """
    from opkit.compat import Verdict, find_unit_tests, needs_googletest

    tests = find_unit_tests(folder)
    if matching is not None:
        tests = select_by_name(tests, matching)
    if not tests:
        raise UsageError(
            f"{folder}: has no kernel unit tests",
            help="they lie in OPERATOR/tests/ut/op_kernel/test_*.cpp",
        )
    if any(map(needs_googletest, tests)):
        _need_googletest()
    good = (Verdict.PASS, Verdict.BEHIND, Verdict.RAN, Verdict.CHIP)
    tried = []
    for outcome, findings in _try_all(tests, jobs=jobs, seconds=seconds, check=check):
        tried.append((outcome, findings))
        told = f"{outcome.name} ({outcome.seconds:.1f} s)"
        told += f": {outcome.cause}" if outcome.cause else f": {outcome.tests} tests"
        if outcome.verdict is Verdict.RAN:
            told += ", which compare no result"
        console.status(outcome.verdict.value, told, tone=None if outcome.verdict in good else "bad")
    counts = Counter(outcome.verdict for outcome, _ in tried)
    found = [finding for _, findings in tried for finding in findings or ()]
    if console.json:
        console.emit_json(_document(tried, counts))
    else:
        _show(console, tried, counts, check)
    return not found and all(verdict in good for verdict in counts)


def _try_all(
    tests: Sequence[UnitTest], *, jobs: int | None, seconds: float, check: bool
) -> Iterator[tuple[UnitTestOutcome, tuple[Finding, ...] | None]]:
    from opkit.compat import try_unit_test
    from opkit.runtime import program_variables
    from opkit.sanitizer import TOOLS, findings_in, program_options
    from opkit.toolchain import OPKIT_COMMAND

    def one(test: UnitTest) -> tuple[UnitTestOutcome, tuple[Finding, ...] | None]:
        with tempfile.TemporaryDirectory(prefix="opkit-unit-tests-") as name:
            place, reports = Path(name).resolve() / "library", Path(name).resolve() / "reports"
            place.mkdir()
            reports.mkdir()
            variables = program_variables(program_options(TOOLS, reports)) if check else {}
            outcome = try_unit_test(
                test,
                place,
                compiler=(*OPKIT_COMMAND, "cc"),
                environment=variables,
                seconds=seconds,
            )
            found = findings_in(reports, TOOLS) if check else None
            return outcome, found.findings if found is not None else None

    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(one, tests)


def _need_googletest() -> None:
    from opkit.toolchain import find_compiler

    argv = [*find_compiler().argv, "-std=c++17", "-E", "-x", "c++", "-"]
    asked = subprocess.run(
        argv, input="#include <gtest/gtest.h>\n", capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise SetupError(
            "GoogleTest is not here: gtest/gtest.h is not found",
            help="install it (apt-get install libgtest-dev), or name its folders in CPATH and"
            " LIBRARY_PATH",
        )


def _by_name(counts: Counter[Verdict]) -> dict[str, int]:
    """Return how many tests ended how."""
    from opkit.compat import Verdict

    return {verdict.value: counts[verdict] for verdict in Verdict}


def _document(
    tried: Sequence[tuple[UnitTestOutcome, tuple[Finding, ...] | None]],
    counts: Counter[Verdict],
) -> dict[str, object]:
    from opkit.sanitizer import finding_object

    return {
        "counts": _by_name(counts),
        "unit_tests": [
            {
                "operator": outcome.name,
                "verdict": outcome.verdict.value,
                "cause": outcome.cause or None,
                "tests": outcome.tests,
                "compared": outcome.compared,
                "seconds": round(outcome.seconds, 2),
                "findings": None
                if findings is None
                else [finding_object(finding, Path("/")) for finding in findings],
            }
            for outcome, findings in tried
        ],
    }


def _show(
    console: Console,
    tried: Sequence[tuple[UnitTestOutcome, tuple[Finding, ...] | None]],
    counts: Counter[Verdict],
    check: bool,
) -> None:
    from opkit.compat import Verdict
    from opkit.sanitizer import finding_text

    for outcome, findings in tried:
        for finding in findings or ():
            console.result(f"\n{outcome.name}")
            console.result(finding_text(finding, Path("/")))
    if check:
        console.result(f"\n{sum(len(findings or ()) for _, findings in tried)} findings")
    ours = len(tried) - counts[Verdict.CHIP]
    right = counts[Verdict.PASS] + counts[Verdict.BEHIND]
    compared = right + counts[Verdict.WRONG]
    ran = compared + counts[Verdict.RAN]
    told = ", ".join(f"{count} {name}" for name, count in _by_name(counts).items())
    console.result(f"{len(tried)} operators' tests: {told}")
    console.result(
        f"{ran} of {ours} for this chip build and run; of {compared} that compare results, {right}"
        f" pass; {counts[Verdict.RAN]} compare none, and only ran"
    )
