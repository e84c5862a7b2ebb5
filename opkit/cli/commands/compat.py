"""`opkit compat`: other people's samples and kernels, tried on the emulator."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import (
    FiniteRange,
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

_Command = TypeVar("_Command", bound=Callable[..., Any])

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


class _Modes(click.Group):
    """The commands below; a folder alone is for `run`, and the flags of before are taken on."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_mode(args) if args else args)


_FLAGS = {"--scan": "scan", "--build": "build", "--unit-tests": "unit-tests", "--mutate": "mutate"}
_MODES = ("run", "scan", "build", "unit-tests", "mutate")


def _with_mode(args: list[str]) -> list[str]:
    """Return a command line that begins with its mode, and say so where a flag stood for it."""
    if args[0] in _MODES or args[0] in ("-h", "--help"):
        return args
    flags = [arg for arg in args if arg in _FLAGS]
    if not flags:
        return ["run", *args]
    if len(flags) > 1:
        raise UsageError(f"{' and '.join(flags)} do not go together")
    mode = _FLAGS[flags[0]]
    # What is mutated was checked without asking for it, and still is.
    left_out = {flags[0], "--check"} if mode == "mutate" else {flags[0]}
    if not {"-q", "--quiet"} & set(args):
        click.echo(
            f"opkit: {flags[0]} is a command now: opkit compat {mode} DIR. The flag goes in the"
            " next version.",
            err=True,
        )
    return [mode, *(arg for arg in args if arg not in left_out)]


@click.group(
    "compat",
    cls=_Modes,
    invoke_without_command=True,
    short_help="Try other people's samples, or scan which names they use.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Try other people's samples, or scan which names they use.

    A folder alone is for `run`.

    Example: opkit compat samples -k "reduce and not sum" --timeout 60
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_sample = click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="N operators of a library, drawn at random.",
)
_seed = click.option(
    "--seed", type=int, default=0, metavar="N", help="With --sample: for the draw."
)
_defines = click.option(
    "-D",
    "--define",
    "defines",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option for every sample's CMake, such as the address of something that it downloads.",
)


def _seconds(of: str, by_default: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--timeout",
        "seconds",
        type=FiniteRange(0, min_open=True),
        metavar="SECONDS",
        help=f"The limit of {of}; {by_default} by default.",
    )


@command.command("run", short_help="Build, run and verify every sample below a folder.")
@_folder
@expression_option("samples whose path", "reduce and not sum")
@jobs_option("Samples tried")
@executor_option("Samples")
@_seconds("each step: data, build, run, check", "120")
@_defines
@click.option(
    "--check", is_flag=True, help="Run every scenario under the checks of opkit check as well."
)
@common_options
def run(
    *,
    folder: Path,
    expression: str | None,
    jobs: int | None,
    executor: str | None,
    seconds: float | None,
    defines: tuple[str, ...],
    check: bool,
    console: Console,
) -> None:
    """Build, run and verify every sample below a folder.

    Every sample below DIR is copied aside, given its data, built with its own CMake, run in each
    of its scenarios and verified as its README says. One whose result nothing speaks for is
    "unverified". Exits 1 if any is wrong, faults, does not build or takes too long, and with
    --check if anything is found.

    Example: opkit compat run samples -k "reduce and not sum" --timeout 60
    """
    from opkit import compat

    samples, how = _asked(folder, expression, executor, jobs, seconds, defines)
    outcomes, found = _try(samples, how, check, console)
    missing = compat.wants([outcome.missing for outcome in outcomes if outcome.missing])
    _show_outcomes(outcomes, missing, found if check else None, console)
    if any(outcome.verdict in _failures() for outcome in outcomes) or any(found):
        raise click.exceptions.Exit(1)


@command.command("mutate", short_help="Score the samples' own verifications on wrong versions.")
@_folder
@expression_option("samples whose path", "reduce and not sum")
@jobs_option("Samples tried")
@executor_option("Samples")
@_seconds("each step: data, build, run, check", "120")
@_defines
@common_options
def mutate(
    *,
    folder: Path,
    expression: str | None,
    jobs: int | None,
    executor: str | None,
    seconds: float | None,
    defines: tuple[str, ...],
    console: Console,
) -> None:
    """Score the samples' own verifications on wrong versions.

    Every sample that passes runs once for each mutant of its kernels, as opkit check --mutate
    makes them; which of them a check or the sample's own verification notices is said.

    Example: opkit compat mutate samples -k gelu
    """
    samples, how = _asked(folder, expression, executor, jobs, seconds, defines)
    with tempfile.TemporaryDirectory(prefix="opkit-compat-mutate-") as name:
        _mutate(samples, how, Path(name).resolve(), console)


@command.command("scan", short_help="Read which names kernels use, and which are here.")
@_folder
@expression_option("operators of a library whose path", "norm and not grad")
@chip_option("read for")
@_sample
@_seed
@common_options
def scan(
    *,
    folder: Path,
    expression: str | None,
    chip: str,
    sample: int | None,
    seed: int,
    console: Console,
) -> None:
    """Read which names kernels use, and which are here.

    For a library of operators: which of them should build; host code is read too.

    Example: opkit compat scan my_kernels
    """
    from opkit import compat
    from opkit.chips import find_chip
    from opkit.cli.parts import chosen_operators
    from opkit.toolchain import operators_below

    folder = _existing(folder)
    is_library = bool(operators_below(folder))
    if (expression is not None or sample is not None) and not is_library:
        raise UsageError(
            "scan reads all of DIR: -k and --sample choose among the operators of a library"
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


@command.command("build", short_help="Build the operators of a library, and count what fails.")
@_folder
@expression_option("operators whose path", "norm and not grad")
@jobs_option("Files compiled")
@chip_option("build for")
@_sample
@_seed
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A file of results, which are kept, and to which new ones are added.",
)
@_seconds("an operator", "none")
@common_options
def build(
    *,
    folder: Path,
    expression: str | None,
    jobs: int | None,
    chip: str,
    sample: int | None,
    seed: int,
    resume: Path | None,
    seconds: float | None,
    console: Console,
) -> None:
    """Build the operators of a library, and count what fails.

    Every operator that names the chip's family is built into a folder that is deleted. With
    --resume a survey goes on where it ended. Exits 1 if one does not build.

    Example: opkit compat build LIBRARY --sample 60 --resume results.jsonl
    """
    from opkit.cli.parts import report_builds

    if not report_builds(
        console,
        _existing(folder),
        chip=chip,
        matching=expression,
        sample=sample,
        seed=seed,
        resume=resume,
        jobs=jobs,
        seconds=seconds,
    ):
        raise click.exceptions.Exit(1)


@command.command("unit-tests", short_help="Try the kernel unit tests of a library of operators.")
@_folder
@expression_option("operators whose path", "norm and not grad")
@jobs_option("Operators tried")
@_seconds("each step", "120")
@click.option("--check", is_flag=True, help="Run every test under the checks of opkit check too.")
@common_options
def unit_tests(
    *,
    folder: Path,
    expression: str | None,
    jobs: int | None,
    seconds: float | None,
    check: bool,
    console: Console,
) -> None:
    """Try the kernel unit tests of a library of operators.

    They are written for the CPU twin: OPERATOR/tests/ut/op_kernel is built with what runs kernels
    as functions here (tikicpulib.h), and run.

    Example: opkit compat unit-tests LIBRARY -k norm
    """
    from opkit.cli.parts import report_unit_tests

    limit = seconds or _STEP_SECONDS
    if not report_unit_tests(
        console, _existing(folder), matching=expression, jobs=jobs, seconds=limit, check=check
    ):
        raise click.exceptions.Exit(1)


def _asked(
    folder: Path,
    expression: str | None,
    executor: str | None,
    jobs: int | None,
    seconds: float | None,
    defines: tuple[str, ...],
) -> tuple[tuple[Sample, ...], _How]:
    """Return the samples that are asked for, and how they are tried."""
    wrong = [define for define in defines if not re.match(r"^\w+(?::\w+)?=", define)]
    if wrong:
        raise UsageError(f'-D "{wrong[0]}" gives no value', help="write -D NAME=VALUE")
    samples = _samples(_existing(folder), expression)
    return samples, _How(chosen_executor(executor, jobs), seconds or _STEP_SECONDS, defines)


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    return folder


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
