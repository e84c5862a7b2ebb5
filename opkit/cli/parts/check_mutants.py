"""What `opkit check --mutate` and `opkit compat mutate` share, and the former."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opkit.cli.console import Console
from opkit.errors import OperatorError, OpkitError, UsageError

if TYPE_CHECKING:
    from opkit.executor import Executor
    from opkit.sanitizer import Judgement, Mutant, MutationReport
    from opkit.toolchain import Project

__all__ = ["begin_mutants", "mutate_project", "show_mutation"]

_SECONDS = 300.0
_NOT_COPIED = ("build", "__pycache__", ".git")


def mutate_project(
    project: Project, op: str | None, arguments: Sequence[str], executor: Executor, console: Console
) -> MutationReport:
    """Check and test every mutant of a project's kernels, each in a copy of its own.

    Args:
        op: only this operator's kernel.
        arguments: options that `opkit check` and `opkit test` both take.
    Raises:
        OperatorError: the project itself is not clean or does not pass.
        UsageError: it has no kernel to mutate.
    """
    from opkit.executor import Work, folder_of
    from opkit.sanitizer import find_mutants, run_mutants

    kernels = sorted((project.folder / "op_kernel").glob(f"{op or '*'}.cpp"))
    mutants = find_mutants(project.root, kernels)
    if not mutants:
        raise UsageError(f"{project.name} has nothing to mutate in op_kernel")
    # Under the project's own name: its package is found by it.
    setup = (project.root.resolve().name, tuple(arguments))
    folders = {"project": folder_of(project.root, left_out=_NOT_COPIED)}
    with console.progress("mutate", len(mutants) + 1) as bar:
        plain = begin_mutants(setup, {"project": project.root})(None)
        _check_plain(project, plain)
        bar.advance()
        # Twice: check and test are two processes, each with a limit of its own.
        work = Work(begin_mutants, setup, folders, seconds=2.5 * _SECONDS)
        return run_mutants(project.name, mutants, work, executor=executor, progress=bar.advance)


def _check_plain(project: Project, plain: Judgement) -> None:
    if not plain.compiles or plain.findings or plain.test != "pass":
        raise OperatorError(
            f"{project.name} itself has findings {', '.join(plain.findings) or 'none'} and its"
            f" test ends with {plain.test or 'a build error'}: only mutants of a correct kernel"
            " tell anything",
            help='mend what "opkit check" and "opkit test" show first',
        )


def begin_mutants(
    setup: tuple[str, tuple[str, ...]], folders: Mapping[str, Path]
) -> Callable[[tuple[Path, Mutant] | None], Judgement]:
    """Return what judges a mutant of a project, or the project itself."""
    name, arguments = setup

    def run(changed: tuple[Path, Mutant] | None) -> Judgement:
        with tempfile.TemporaryDirectory(prefix="opkit-mutate-") as scratch:
            copy = Path(scratch).resolve() / name
            shutil.copytree(folders["project"], copy, ignore=shutil.ignore_patterns(*_NOT_COPIED))
            if changed is not None:
                file, mutant = changed
                source = copy / file
                text = source.read_text(encoding="utf-8", errors="surrogateescape")
                mutated = mutant.apply(text)
                source.write_text(mutated, encoding="utf-8", errors="surrogateescape")
            return _judge(copy, arguments)

    return run


def _judge(project: Path, arguments: Sequence[str]) -> Judgement:
    from opkit.sanitizer import Judgement

    checked = _opkit("check", project, arguments)
    error = checked.get("error", {})
    if error.get("kind") == "BuildError":
        return Judgement(False, (), "")
    tested = _opkit("test", project, arguments)
    findings = tuple(dict.fromkeys(item["id"] for item in checked.get("findings", ())))
    return Judgement(True, findings, _test_outcome(tested))


def _test_outcome(report: dict[str, Any]) -> str:
    if "error" in report:
        return str(report["error"]["message"])
    if report["passed"]:
        return "pass"
    verdicts = [case["verdict"] for case in report["cases"]]
    return next((verdict for verdict in verdicts if not verdict.startswith("pass")), "pass")


def _opkit(command: str, project: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a command of opkit in a process of its own: mutants crash and hang."""
    from opkit.toolchain import OPKIT_COMMAND

    argv = [*OPKIT_COMMAND, command, str(project), *arguments, "--json"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"error": {"kind": "Timeout", "message": f"takes more than {_SECONDS:g} s"}}
    try:
        report = json.loads(done.stdout)
    except ValueError:
        if done.returncode >= 0:
            text = done.stderr.decode(errors="replace")
            raise OpkitError(f"opkit {command} of a mutant printed no JSON:\n{text}") from None
        return {"error": {"kind": "Crash", "message": f"ends with signal {-done.returncode}"}}
    if not isinstance(report, dict):
        raise OpkitError(f"opkit {command} printed {type(report).__name__}, not an object")
    return report


def show_mutation(reports: Sequence[MutationReport], console: Console) -> None:
    """Print the score of each report, by kind of mutant, and every survivor."""
    from opkit.sanitizer import Caught, MutantKind

    if console.json:
        console.emit_json([_report_object(report) for report in reports])
        return
    rows = []
    for report in reports:
        for kind in MutantKind:
            some = [item for item in report.results if item.mutant.kind is kind]
            counts = [sum(item.judgement.caught is caught for item in some) for caught in Caught]
            if some:
                rows.append((report.name, kind.value, *map(str, counts)))
    columns = ("name", "mutants", "check", "test only", "neither", "invalid")
    console.table(columns, rows, right=columns[2:])
    for report in reports:
        for item in report.survivors:
            console.result(f"survives: {report.name} {item.file}:{item.mutant.line}")
            console.result(f"    {item.mutant.label}")
    killed = sum(report.killed for report in reports)
    total = sum(report.total for report in reports)
    by_check = sum(report.count(Caught.CHECK) for report in reports)
    console.result(f"\n{killed} of {total} mutants killed, {by_check} of them by check")


def _report_object(report: MutationReport) -> dict[str, object]:
    return {
        "name": report.name,
        "killed": report.killed,
        "total": report.total,
        "mutants": [
            {
                "file": item.file,
                "line": item.mutant.line,
                "kind": item.mutant.kind.value,
                "old": item.mutant.old,
                "new": item.mutant.new,
                "caught": item.judgement.caught.value,
                "findings": item.judgement.findings,
                "test": item.judgement.test,
            }
            for item in report.results
        ],
    }
