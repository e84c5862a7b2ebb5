"""`opkit compat mutate`: the checks and the samples' own verifications, scored on mutants."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.cli.console import Console
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.compat import Outcome, Sample
    from opkit.sanitizer import Finding, Judgement, Mutant, MutantResult, MutationReport

__all__ = ["Ran", "mutate_samples"]

Ran = Sequence[tuple["Outcome", tuple["Finding", ...]]]
"""Scenarios with what each of them showed under the checks."""

_SOURCES = {".asc", ".cpp", ".cc", ".h", ".hpp"}
_COPY_IGNORES = shutil.ignore_patterns(".git", "build", "__pycache__")


def mutate_samples(
    samples: Sequence[Sample],
    run: Callable[[Sequence[Sample]], Ran],
    scratch: Path,
    console: Console,
) -> list[MutationReport]:
    """Run every mutant of every sample that passes as it is, and return a report a sample.

    Args:
        run: tries samples under the checks, several at a time.
        scratch: an empty folder for the mutated copies.
    Raises:
        UsageError: no sample passes.
    """
    from opkit.sanitizer import MutationReport

    plain = _by_sample(run(samples))
    correct = [sample for sample in samples if _passes(plain.get(sample.name, []))]
    for sample in samples:
        if sample not in correct:
            console.status("skip", f"{sample.name}: it does not pass as it is")
    copies: dict[str, tuple[Sample, Path, Mutant]] = {}
    for sample in correct:
        for file, mutant in _mutants(sample):
            name = f"{sample.name} #{len(copies)}"
            copies[name] = (sample, file, mutant)
    if not copies:
        raise UsageError("no sample passes, or none has anything to mutate")
    made = [
        _mutated(sample, file, mutant, name, scratch / str(index))
        for index, (name, (sample, file, mutant)) in enumerate(copies.items())
    ]
    ran = _by_sample(run(made))
    results: dict[str, list[MutantResult]] = {}
    for name, (sample, file, mutant) in copies.items():
        known = {finding.id for _, findings in plain[sample.name] for finding in findings}
        judged = _judge(ran.get(name, []), known)
        results.setdefault(sample.name, []).append(_result(file, mutant, judged))
    return [MutationReport(name, tuple(items)) for name, items in results.items()]


def _result(file: Path, mutant: Mutant, judgement: Judgement) -> MutantResult:
    from opkit.sanitizer import MutantResult

    return MutantResult(file, mutant, judgement)


def _by_sample(ran: Ran) -> dict[str, list[tuple[Outcome, tuple[Finding, ...]]]]:
    groups: dict[str, list[tuple[Outcome, tuple[Finding, ...]]]] = {}
    for outcome, findings in ran:
        groups.setdefault(outcome.sample, []).append((outcome, findings))
    return groups


def _passes(ran: Ran) -> bool:
    from opkit.compat import Verdict

    verdicts = [outcome.verdict for outcome, _ in ran if outcome.verdict is not Verdict.CHIP]
    return bool(verdicts) and all(verdict.passed for verdict in verdicts)


def _mutants(sample: Sample) -> tuple[tuple[Path, Mutant], ...]:
    from opkit.sanitizer import find_mutants

    files = sample.sources or sorted(
        path
        for path in sample.folder.rglob("*")
        if path.suffix in _SOURCES and "AscendC" in path.read_text("utf-8", "replace")
    )
    return find_mutants(sample.folder, files)


def _mutated(sample: Sample, file: Path, mutant: Mutant, name: str, place: Path) -> Sample:
    """Return a copy of a sample with the mutant in it."""
    folder = place / sample.folder.resolve().name
    shutil.copytree(sample.folder, folder, ignore=_COPY_IGNORES)
    source = folder / file
    text = source.read_text(encoding="utf-8", errors="surrogateescape")
    source.write_text(mutant.apply(text), encoding="utf-8", errors="surrogateescape")
    sources = tuple(folder / path.relative_to(sample.folder) for path in sample.sources)
    return replace(sample, name=name, folder=folder, sources=sources)


def _judge(ran: Ran, known: set[str]) -> Judgement:
    from opkit.compat import Verdict
    from opkit.sanitizer import Judgement

    verdicts = [outcome.verdict for outcome, _ in ran]
    ids = [finding.id for _, findings in ran for finding in findings if finding.id not in known]
    fine = (Verdict.PASS, Verdict.CHIP)
    test = next((verdict.value for verdict in verdicts if verdict not in fine), "pass")
    compiles = bool(verdicts) and Verdict.BUILD not in verdicts
    return Judgement(compiles, tuple(dict.fromkeys(ids)), test)
