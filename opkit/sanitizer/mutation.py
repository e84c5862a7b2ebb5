"""Scoring checks and tests by mutants: which wrong versions of a correct kernel each catches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from opkit.executor import Executor, Lost, Work
from opkit.sanitizer.mutants import Mutant, mutants_of

__all__ = ["Caught", "Judgement", "MutantResult", "MutationReport", "find_mutants", "run_mutants"]


class Caught(Enum):
    """Who noticed that a mutant is wrong."""

    CHECK = "check"
    """A finding; the test may have failed as well."""
    TEST = "test"
    """The result is wrong, and nothing was found."""
    NEITHER = "neither"
    """It survives: the same results, and nothing found."""
    INVALID = "invalid"
    """It does not compile, and does not count."""


@dataclass(frozen=True)
class Judgement:
    """What became of one mutant."""

    compiles: bool
    findings: tuple[str, ...]
    """Classes of findings that the correct kernel does not have."""
    test: str
    """`pass`, or why the test failed; empty where it was not run."""

    @property
    def caught(self) -> Caught:
        """Who noticed."""
        if not self.compiles:
            return Caught.INVALID
        if self.findings:
            return Caught.CHECK
        return Caught.NEITHER if self.test == "pass" else Caught.TEST


@dataclass(frozen=True)
class MutantResult:
    """One mutant of one file and its judgement."""

    file: Path
    """Relative to the project or sample."""
    mutant: Mutant
    judgement: Judgement


@dataclass(frozen=True)
class MutationReport:
    """All mutants of one project or sample."""

    name: str
    results: tuple[MutantResult, ...]

    def count(self, caught: Caught) -> int:
        """Return how many mutants were noticed that way."""
        return Counter(result.judgement.caught for result in self.results)[caught]

    @property
    def total(self) -> int:
        """Mutants that compile."""
        return len(self.results) - self.count(Caught.INVALID)

    @property
    def killed(self) -> int:
        """Mutants that check or test has noticed."""
        return self.count(Caught.CHECK) + self.count(Caught.TEST)

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Mutants that nobody has noticed."""
        return tuple(item for item in self.results if item.judgement.caught is Caught.NEITHER)


def find_mutants(root: Path, files: Iterable[Path]) -> tuple[tuple[Path, Mutant], ...]:
    """Return the mutants of files, each with its file relative to `root`."""
    found = []
    for file in files:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        found += [(file.relative_to(root), mutant) for mutant in mutants_of(text)]
    return tuple(found)


def run_mutants(
    name: str,
    mutants: Sequence[tuple[Path, Mutant]],
    work: Work,
    *,
    executor: Executor,
    progress: Callable[[str], None] | None = None,
) -> MutationReport:
    """Judge every mutant and return the report in the order of `mutants`.

    Args:
        work: its cases are (file, mutant), a result is a `Judgement`.
        progress: called with each mutant's label when it is judged.
    """
    results: dict[int, MutantResult] = {}
    with executor.open(work) as crew:
        for index, result in crew.stream(mutants):
            file, mutant = mutants[index]
            judged = Judgement(True, (), str(result)) if isinstance(result, Lost) else result
            results[index] = MutantResult(file, mutant, judged)
            if progress is not None:
                progress(mutant.label)
    return MutationReport(name, tuple(results[index] for index in sorted(results)))
