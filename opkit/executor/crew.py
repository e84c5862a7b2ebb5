"""The interface that every kind of executor has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol

from opkit.executor.work import Lost, Work

__all__ = ["Crew", "Executor"]


class Crew(ABC):
    """Workers that have begun one piece of work; `with` ends them, Ctrl-C too."""

    @abstractmethod
    def stream(self, cases: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield each case's number and result, or `Lost`, as they come; each number once.

        A lost worker's cases run again elsewhere. What a case raises, this raises.
        """

    @abstractmethod
    def close(self, *, at_once: bool = False) -> None:
        """End the workers; `at_once`: in the middle of their cases."""

    def run(
        self, cases: Sequence[Any], *, progress: Callable[[Any], None] | None = None
    ) -> list[Any | Lost]:
        """Return every case's result in the order of the cases.

        Args:
            progress: called with each result when it comes.
        """
        results: dict[int, Any] = {}
        for index, result in self.stream(cases):
            results[index] = result
            if progress is not None:
                progress(result)
        return [results[index] for index in range(len(cases))]

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(at_once=kind is not None)


class Executor(Protocol):
    """Where cases run."""

    @property
    def workers(self) -> int:
        """How many cases run at a time."""
        ...

    def open(self, work: Work) -> Crew:
        """Return workers for a piece of work."""
        ...
