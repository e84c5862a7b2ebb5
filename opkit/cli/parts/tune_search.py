"""How `opkit tune` searches, and where its results go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.cli.console import Console, write_text

if TYPE_CHECKING:
    from opkit.tuning import Budget, Subject, TuningReport

__all__ = ["Search"]


@dataclass(frozen=True)
class Search:
    """How to search, and where to."""

    budget: Budget
    seed: int
    state: Path | None
    html: Path | None
    executor: str | None
    timeout_seconds: float
    chip: str
    dry_run: bool

    def run(self, subject: Subject, state: Path, console: Console) -> TuningReport:
        """Tune one subject under a progress bar."""
        import time

        from opkit.executor import open_executor
        from opkit.tuning import tune

        most = subject.space.size
        if self.budget.candidates is not None:
            most = min(most, self.budget.candidates)
        begin = time.monotonic()
        with console.progress("tune", most) as bar:
            report = tune(
                subject,
                executor=open_executor(self.executor or "local"),
                state=self.state or state,
                budget=self.budget,
                seed=self.seed,
                progress=lambda best, count: bar.advance(f"best {best}", steps=count),
            )
        seconds = max(1e-9, time.monotonic() - begin)
        console.status(
            "tuned", f"{subject.name}, {len(report.trials)} candidates in {seconds:.1f} s"
        )
        return report

    def show(self, reports: Sequence[TuningReport], console: Console) -> None:
        """Print the reports and write the page."""
        from opkit.cli.parts.profile_output import made_text
        from opkit.tuning import landscape_page, report_object, report_text

        for at, report in enumerate(reports):
            console.result(report_text(report))
            if self.html is not None:
                path = self.html
                if at > 0:
                    path = path.with_name(f"{path.stem}-{at + 1}{path.suffix}")
                write_text(path, landscape_page(report, made=made_text()))
                console.status("wrote", str(path))
        if console.json:
            console.emit_json([report_object(report) for report in reports])
