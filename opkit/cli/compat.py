"""`opkit compat`: other people's samples and kernels, tried on the emulator."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import (
    chip_option,
    chosen_executor,
    executor_option,
    expression_option,
    jobs_option,
)
from opkit.errors import UsageError
from opkit.selection import select_by_name

if TYPE_CHECKING:
    from opkit.compat import OperatorScan, Outcome, Sample, ScanReport, Verdict, Want
    from opkit.executor import Executor
    from opkit.sanitizer import Finding

__all__ = ["command"]

_WANTS_SHOWN = 25
_STEP_SECONDS = 120.0


@dataclass(frozen=True)
class _How:
    """How samples are tried."""

    executor: Executor
    seconds: float
    """The limit of each step."""
    defines: tuple[str, ...]
    """NAME=VALUE, for every CMake."""


@click.command("compat", short_help="Try other people's samples, or scan which names they use.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--scan",
    is_flag=True,
    help="Only read: which names are used, and which are here; of a library, what builds.",
)
@click.option(
    "--unit-tests",
    "unit_tests",
    is_flag=True,
    help="Try the kernel unit tests of a library of operators, written for the CPU twin.",
)
@click.option(
    "--build",
    "builds",
    is_flag=True,
    help="Build the operators of a library of operators, and count the causes of those that fail.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --build, or --scan of a library: N operators drawn at random.",
)
@click.option("--seed", type=int, default=0, metavar="N", help="With --sample: for the draw.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --build: a file of results, which are kept, and to which new ones are added.",
)
@chip_option("build for, with --build")
@expression_option("samples whose path", "reduce and not sum")
@jobs_option("Samples tried")
@executor_option("Samples")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="The limit of each step: data, build, run, check; 120 by default, with --build none.",
)
@click.option(
    "-D",
    "--define",
    "defines",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option for every sample's CMake, such as the address of something that it downloads.",
)
@click.option(
    "--check", is_flag=True, help="Run every scenario under the checks of opkit check as well."
)
@click.option(
    "--mutate",
    is_flag=True,
    help="Score the checks and the samples' own verifications on wrong versions of them.",
)
@common_options
def command(
    *,
    folder: Path,
    scan: bool,
    unit_tests: bool,
    builds: bool,
    sample: int | None,
    seed: int,
    resume: Path | None,
    chip: str,
    expression: str | None,
    jobs: int | None,
    executor: str | None,
    seconds: float | None,
    defines: tuple[str, ...],
    check: bool,
    mutate: bool,
    console: Console,
) -> None:
    """Try other people's samples, or scan which names they use.

    Every sample below DIR is copied aside, given its data, built with its own CMake, run in each
    of its scenarios and verified as its README says. One whose result nothing speaks for is
    "unverified". Exits 1 if any is wrong, faults, does not build or takes too long, and with
    --check if anything is found.

    --mutate runs every sample that passes once for each mutant of its kernels, as opkit check
    --mutate makes them, and says which of them a check or the sample's own verification notices.

    --build builds every operator of a library that names the chip's family, into a folder that is
    deleted. With --resume a survey goes on where it ended.

    --unit-tests builds OPERATOR/tests/ut/op_kernel of a library with what runs kernels as
    functions here (tikicpulib.h), and runs them.

    Example: opkit compat samples -k "reduce and not sum" --timeout 60
    """
    from opkit import compat

    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    wrong = [define for define in defines if not re.match(r"^\w+(?::\w+)?=", define)]
    if wrong:
        raise UsageError(f'-D "{wrong[0]}" gives no value', help="write -D NAME=VALUE")
    if scan:
        _scan(folder, expression, chip, sample, seed, console)
        return
    if builds:
        from opkit.cli.parts import report_builds

        if unit_tests or check or mutate or defines or executor is not None:
            raise UsageError(
                "--build goes with -k, -j, -c, --sample, --seed, --resume and --timeout only"
            )
        if not report_builds(
            console,
            folder,
            chip=chip,
            matching=expression,
            sample=sample,
            seed=seed,
            resume=resume,
            jobs=jobs,
            seconds=seconds,
        ):
            raise click.exceptions.Exit(1)
        return
    limit = seconds or _STEP_SECONDS
    if sample is not None or resume is not None:
        raise UsageError("--sample and --resume go with --build")
    if unit_tests:
        from opkit.cli.parts import report_unit_tests

        if mutate or defines or executor is not None:
            raise UsageError("--mutate, -D and --executor are for samples, not for --unit-tests")
        if not report_unit_tests(
            console, folder, matching=expression, jobs=jobs, seconds=limit, check=check
        ):
            raise click.exceptions.Exit(1)
        return
    samples = _samples(folder, expression)
    how = _How(chosen_executor(executor, jobs), limit, defines)
    if mutate:
        with tempfile.TemporaryDirectory(prefix="opkit-compat-mutate-") as name:
            _mutate(samples, how, Path(name).resolve(), console)
        return
    outcomes, found = _try(samples, how, check, console)
    missing = compat.wants([outcome.missing for outcome in outcomes if outcome.missing])
    _show_outcomes(outcomes, missing, found if check else None, console)
    if any(outcome.verdict in _failures() for outcome in outcomes) or any(found):
        raise click.exceptions.Exit(1)


def _samples(folder: Path, expression: str | None) -> tuple[Sample, ...]:
    from opkit import compat

    samples = compat.find_samples(folder)
    if not samples:
        raise UsageError(
            f"{folder}: has no samples",
            help="a sample has a CMakeLists.txt that uses ASC, or .asc sources",
        )
    return samples if expression is None else _chosen(samples, expression)


def _try(
    samples: Sequence[Sample], how: _How, check: bool, console: Console
) -> tuple[tuple[Outcome, ...], list[tuple[Finding, ...] | None]]:
    """Return what became of every scenario and, where it was checked, what it showed."""
    from opkit import compat
    from opkit.cli.parts import Tried, compat_work
    from opkit.executor import Lost

    tasks = compat.plan(samples)
    work = compat_work(samples, defines=how.defines, seconds=how.seconds, check=check)
    found: dict[int, tuple[Outcome, tuple[Finding, ...] | None]] = {}
    with console.progress("compat", total=len(tasks)) as bar, how.executor.open(work) as crew:
        for index, result in crew.stream(tasks):
            sample, scenario = tasks[index].sample.name, tasks[index].scenario.name
            if isinstance(result, Lost):
                fault = compat.Outcome(sample, scenario, compat.Verdict.FAULT, str(result))
                result = Tried(fault, None, ())
            for line in result.commands:
                console.detail(f"$ {line}")
            if result.outcome is not None:
                found[index] = (result.outcome, result.findings)
            bar.advance(f"{sample} {result.outcome.verdict.value if result.outcome else ''}")
    ordered = [found[index] for index in sorted(found)]
    return tuple(outcome for outcome, _ in ordered), [findings for _, findings in ordered]


def _mutate(samples: Sequence[Sample], how: _How, scratch: Path, console: Console) -> None:
    from opkit.cli.parts import Ran, mutate_samples, show_mutation

    def run(some: Sequence[Sample]) -> Ran:
        outcomes, found = _try(some, how, True, console)
        return list(zip(outcomes, [findings or () for findings in found], strict=True))

    show_mutation(mutate_samples(samples, run, scratch, console), console)


def _chosen(samples: tuple[Sample, ...], expression: str) -> tuple[Sample, ...]:

    chosen = select_by_name(samples, expression)
    if not chosen:
        raise UsageError(
            f'no sample matches -k "{expression}"', help=f"names look like {samples[0].name}"
        )
    return chosen


def _failures() -> frozenset[Verdict]:
    from opkit.compat import Verdict

    return frozenset({Verdict.WRONG, Verdict.FAULT, Verdict.BUILD, Verdict.TIMEOUT})


def _show_outcomes(
    outcomes: tuple[Outcome, ...],
    missing: tuple[Want, ...],
    found: list[tuple[Finding, ...] | None] | None,
    console: Console,
) -> None:
    from opkit.compat import Verdict
    from opkit.sanitizer import finding_object, finding_text

    shown = found or [None] * len(outcomes)
    counts = Counter(outcome.verdict for outcome in outcomes)
    samples: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        samples.setdefault(outcome.sample, []).append(outcome)
    whole = [name for name, parts in samples.items() if _passes(parts)]
    if console.json:
        console.emit_json(
            {
                "samples": len(samples),
                "samples_passed": len(whole),
                "counts": {verdict.value: counts[verdict] for verdict in Verdict},
                "outcomes": [
                    {
                        "sample": outcome.sample,
                        "scenario": outcome.scenario,
                        "verdict": outcome.verdict.value,
                        "cause": outcome.cause,
                        "missing": outcome.missing,
                        "seconds": round(outcome.seconds, 2),
                        "findings": None
                        if findings is None
                        else [finding_object(finding, Path("/")) for finding in findings],
                    }
                    for outcome, findings in zip(outcomes, shown, strict=True)
                ],
                "missing": missing,
            }
        )
        return
    tones = {
        Verdict.PASS: "good",
        Verdict.BEHIND: "warn",
        Verdict.CHIP: "quiet",
        Verdict.UNVERIFIED: "warn",
    }
    console.table(
        ("sample", "scenario", "verdict", "s", "cause"),
        [
            (
                outcome.sample,
                outcome.scenario or "-",
                console.styled(outcome.verdict.value, tones.get(outcome.verdict, "bad")),
                f"{outcome.seconds:.1f}",
                "" if outcome.verdict is Verdict.PASS else outcome.cause,
            )
            for outcome in outcomes
        ],
        right=("s",),
    )
    _show_wants(missing, "samples' scenarios", console)
    for outcome, findings in zip(outcomes, shown, strict=True):
        for finding in findings or ():
            console.result(f"\n{outcome.sample} {outcome.scenario}".rstrip())
            console.result(finding_text(finding, Path("/")))
    if found is not None:
        checked = [findings for findings in found if findings is not None]
        count = sum(len(findings) for findings in checked)
        console.result(f"\n{len(checked)} scenarios checked, {count} findings")
    told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    console.result(f"\n{len(outcomes)} scenarios: {told}")
    console.result(
        f"{len(whole)} of {len(samples)} samples pass in every scenario for an emulated chip"
    )


def _passes(outcomes: list[Outcome]) -> bool:
    """Whether a sample passes: each scenario but those for other chips, and at least one."""
    from opkit.compat import Verdict

    counted = [outcome for outcome in outcomes if outcome.verdict is not Verdict.CHIP]
    return bool(counted) and all(outcome.verdict.passed for outcome in counted)


def _scan(
    folder: Path,
    expression: str | None,
    chip: str,
    sample: int | None,
    seed: int,
    console: Console,
) -> None:
    from opkit import compat
    from opkit.chips import find_chip
    from opkit.cli.parts import chosen_operators
    from opkit.toolchain import operators_below

    is_library = bool(operators_below(folder))
    if (expression is not None or sample is not None) and not is_library:
        raise UsageError(
            "--scan reads all of DIR: -k and --sample choose among the operators of a library"
        )
    report = compat.scan(folder, chip=find_chip(chip))
    operators: tuple[OperatorScan, ...] = ()
    if is_library:
        chosen = chosen_operators(folder, chip, expression, sample, seed)
        with console.progress("scan", total=len(chosen)) as bar:
            operators = compat.scan_operators(
                folder,
                tuple(chosen.values()),
                report.kernels,
                chip=find_chip(chip),
                progress=bar.advance,
            )
    if console.json:
        console.emit_json(
            {
                "kernels": len(report.kernels),
                "complete": report.complete,
                "share": _share(report),
                "other_chips": report.other_chips,
                "is_library": is_library,
                "missing": report.missing,
                "by_kernel": report.kernels,
                "by_operator": operators,
            }
        )
        return
    _show_scan(report, console)
    if is_library:
        _show_operators(operators, console)
    else:
        console.result(
            "these are kernels alone: no library of operators is here (CMakeLists.txt,"
            " cmake/*.cmake, CATEGORY/OPERATOR/op_kernel), so no host code was read: what builds"
            " is not known"
        )


def _show_operators(operators: tuple[OperatorScan, ...], console: Console) -> None:
    from opkit.compat import wants

    _show_wants(
        wants([one.missing for one in operators]), "operators", console, what="header or name"
    )
    whole = sum(not one.missing for one in operators)
    if console.verbose:
        rows = [(one.operator, " ".join(one.missing) or "-") for one in operators]
        console.table(("operator", "lacks"), rows)
    console.result(
        f"\n{whole} of {len(operators)} operators ({whole / len(operators):.0%}) lack no header and"
        " no name: as far as reading tells, these build"
    )


def _show_scan(report: ScanReport, console: Console) -> None:
    if console.verbose:
        rows = [(kernel.kernel, " ".join(kernel.missing) or "-") for kernel in report.kernels]
        console.table(("kernel", "missing names"), rows)
    _show_wants(report.missing, "kernels", console)
    console.result(
        f"\n{report.complete} of {len(report.kernels)} kernels ({_share(report):.0%})"
        " use no missing name"
    )
    if report.other_chips:
        console.result(f"left out: {len(report.other_chips)} kernels for a later architecture")


def _share(report: ScanReport) -> float:
    return report.complete / max(len(report.kernels), 1)


def _show_wants(
    missing: tuple[Want, ...], whom: str, console: Console, *, what: str = "name"
) -> None:
    if not missing:
        return
    shown = missing if console.verbose else missing[:_WANTS_SHOWN]
    console.result()
    console.table(
        (f"missing {what}", f"{whom} that want it", "lack nothing else"),
        [(want.name, str(want.wanted_by), str(want.alone)) for want in shown],
        right=(f"{whom} that want it", "lack nothing else"),
    )
    if len(shown) < len(missing):
        console.result(f"and {len(missing) - len(shown)} more names: -v lists them")
