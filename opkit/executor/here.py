"""Cases in this process, one after the other: a debugger stops where it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opkit.executor.crew import Crew
from opkit.executor.work import Work, close_runner

__all__ = ["HereExecutor"]


class HereExecutor:
    """This process. A case that crashes or hangs, it does here."""

    @property
    def workers(self) -> int:
        """One."""
        return 1

    def open(self, work: Work) -> Crew:
        """Return this process as a crew."""
        return _HereCrew(work)


class _HereCrew(Crew):
    def __init__(self, work: Work) -> None:
        self._work = work
        self._run: Callable[[Any], Any] | None = None

    def stream(self, cases: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        if self._run is None:
            places = {name: folder.path for name, folder in self._work.folders.items()}
            self._run = self._work.begin(self._work.setup, places)
        for index, case in enumerate(cases):
            yield index, self._run(case)

    def close(self, *, at_once: bool = False) -> None:
        close_runner(self._run)
        self._run = None
