"""pytest --opkit-check: every launch of every test under the checks.

Loaded by the entry point `pytest11`, in every pytest of an environment that has opkit. So it
imports nothing heavy before the option is given. A test that passes fails when its launches have
findings; launches by programs that it starts count too, where `opkit cc` has linked them. A fault
is not a finding here: a test that expects none fails by its exception, and one may expect it.

    pytest --opkit-check --opkit-check-tool racecheck tests
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from opkit.sanitizer import Finding

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --opkit-check and what goes with it, named as in `opkit check`."""
    group = parser.getgroup("opkit")
    group.addoption(
        "--opkit-check", action="store_true", help="run the tests' launches under opkit check"
    )
    group.addoption(
        "--opkit-check-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="only this tool of opkit check, repeatable",
    )
    group.addoption(
        "--opkit-check-suppressions",
        metavar="FILE",
        help="known findings, as opkit check --suppressions reads them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse wrong names of tools before any test runs."""
    if not config.getoption("--opkit-check"):
        return
    from opkit.errors import UsageError
    from opkit.sanitizer import chosen_tools

    try:
        chosen_tools(config.getoption("--opkit-check-tool"))
    except UsageError as err:
        raise pytest.UsageError(str(err)) from err


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run one test under the checks."""
    if not item.config.getoption("--opkit-check"):
        return (yield)
    from opkit import runtime
    from opkit.sanitizer import Check, chosen_tools, findings_in, program_options

    tools = chosen_tools(item.config.getoption("--opkit-check-tool"))
    kept = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="opkit-check-") as name:
        folder = Path(name)
        os.environ.update(runtime.program_variables(program_options(tools, folder)))
        session = Check(tools)
        try:
            with session:
                result = yield
        finally:
            os.environ.clear()
            os.environ.update(kept)
        programs = findings_in(folder, tools)
    findings = [*session.findings, *(programs.findings if programs is not None else ())]
    _fail(item, findings)
    return result


def _fail(item: pytest.Item, findings: list[Finding]) -> None:
    from opkit.sanitizer import find_class, finding_text, read_suppressions

    root = item.config.rootpath
    path = item.config.getoption("--opkit-check-suppressions")
    known = read_suppressions(Path(path)) if path is not None else None
    shown = [
        finding_text(finding, root)
        for finding in findings
        if not find_class(finding.id).fault and not (known and known.match(finding, root))
    ]
    if shown:
        pytest.fail("\n\n".join(shown), pytrace=False)
