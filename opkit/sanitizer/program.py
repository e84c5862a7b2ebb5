"""Running a whole program or script under the checks."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from opkit import runtime
from opkit.errors import KernelFault, UsageError
from opkit.sanitizer.finding import Found, read_findings
from opkit.sanitizer.run import CaseFindings, CheckReport, split_findings, watch
from opkit.sanitizer.session import detectors_of, kept_findings
from opkit.sanitizer.settings import CheckSettings

__all__ = ["check_program", "check_script", "findings_in", "program_options"]


def program_options(
    tools: Sequence[str],
    folder: Path,
    *,
    auto_sync: bool = True,
    block: int | None = None,
    unused: bool = False,
    witness: bool = False,
    padding: bool = False,
) -> dict[str, str | int | None]:
    """Return the options that make programs leave their findings as files in `folder`."""
    return {
        "check": detectors_of(tools, padding=padding),
        "check_auto_sync": int(auto_sync),
        "check_block": block,
        "check_unused": int(unused),
        "check_witness": int(witness),
        "check_report": str(folder),
    }


def findings_in(folder: Path, tools: Sequence[str]) -> Found | None:
    """Return what programs have left in a folder; None where none has left anything."""
    found = [read_findings(path.read_text("utf-8", "replace")) for path in folder.glob("*.json")]
    if not found:
        return None
    findings = tuple(finding for part in found for finding in part.findings)
    gaps = tuple(gap for part in found for gap in part.gaps)
    return kept_findings(Found(findings, gaps), tools)


def check_program(
    program: Path,
    arguments: Sequence[str],
    *,
    settings: CheckSettings,
    unused: bool = False,
    chip: str | None = None,
    timeout_seconds: float = 0.0,
) -> CheckReport:
    """Run a program with its own streams and return what the launches of it showed.

    Programs that it starts in turn are checked too, where `opkit cc` has linked them.

    Args:
        unused: also device memory that nothing ever touched.
        timeout_seconds: see `runtime.time_limit`.
    Raises:
        UsageError: there is no such program, or it left no findings: it is not linked to opkit, or
            ended in a way that leaves no time to write them.
    """
    found_program = runtime.find_program(program)
    with tempfile.TemporaryDirectory(prefix="opkit-check-") as name:
        folder = Path(name)
        options = program_options(
            settings.tools,
            folder,
            auto_sync=settings.auto_sync,
            block=settings.block,
            unused=unused,
            witness=settings.witness,
            padding=settings.padding,
        )
        options |= {"finds_raw_writes": None if settings.allow_raw_writes else 1}
        options |= {"chip": chip, **runtime.timeout_option(timeout_seconds)}
        code = runtime.run_program(found_program, arguments, options)
        found = findings_in(folder, settings.tools)
    if found is None:
        ended = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        raise UsageError(
            f"{program} {ended} and has left no findings, so nothing was checked",
            help='link it with "opkit cc" of this version, and let it end by return or exit',
        )
    return _report(found_program, found, code, settings)


def check_script(script: Path, arguments: Sequence[str], *, settings: CheckSettings) -> CheckReport:
    """Run a Python script in this process and return what the launches of it showed.

    Launches by way of PyTorch count: they run on the same device.

    What the script does not catch is shown as Python shows it, and its code is then 1.
    """
    session = watch(settings)
    code: int | str | None = 1
    try:
        with session:
            code = runtime.run_script(script, arguments)
    except KernelFault:
        pass  # among the findings or the gaps
    number = code if isinstance(code, int) else int(code is not None)
    found = Found(session.findings, session.gaps, session.notes)
    return _report(script, found, number, settings)


def _report(program: Path, found: Found, code: int, settings: CheckSettings) -> CheckReport:
    root = Path.cwd()
    kept, hidden = split_findings(found.findings, settings, root, program.name)
    notes, hidden_notes = split_findings(found.notes, settings, root, program.name)
    cases = (CaseFindings(program.name, kept, notes),)
    suppressed = len(hidden | hidden_notes)
    return CheckReport(
        program.name, root, settings.tools, cases, suppressed, gaps=found.gaps, exit_code=code
    )
