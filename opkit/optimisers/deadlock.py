"""Streams that wait for each other in a circle, found when the last edge of it is made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from opkit.errors import SetupError, UsageError
from opkit.optimisers.native import native

if TYPE_CHECKING:
    import networkx

__all__ = ["Cycle", "DeadlockDetector", "Link", "Task", "calling_line"]

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Link:
    """One wait of a circle."""

    stream: str
    event: str
    wait: str
    """Where the wait stands, `file:line`; empty: unknown."""
    record: str
    """Where the event is recorded, on the next stream of the circle."""


@dataclass(frozen=True)
class Cycle:
    """Streams that wait for each other, and the article's advice for so many."""

    links: tuple[Link, ...]
    report: str

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams' names, in the order in which they wait."""
        return tuple(link.stream for link in self.links)

    def __str__(self) -> str:
        return self.report


@dataclass(frozen=True)
class Task:
    """One thing that a program puts into a stream, for `check_deadlock`."""

    action: str
    """`record` or `wait`."""
    stream: str
    event: str


class DeadlockDetector:
    """Watches the streams of the acl runtime and of torch's device inside a `with` block.

    A wait is for the last recording of its event before it, or, where there is none yet, for the
    next one. The acl runtime and torch let such an early wait pass at once: there a circle does not
    hang, but the wait protects nothing. `include/td/deadlock_detector.h` is the same for C++.
    """

    def __init__(self, on_cycle: Callable[[Cycle], None] | None = None) -> None:
        """Prepare; `on_cycle` is called inside the call that closes a circle."""
        self.cycles: list[Cycle] = []
        self._on_cycle = on_cycle
        self._native = native().DeadlockDetector()
        self._native.on_cycle(self._found)

    def _found(self, links: Sequence[dict[str, str]], report: str) -> None:
        cycle = Cycle(tuple(Link(**link) for link in links), report)
        self.cycles.append(cycle)
        if self._on_cycle is not None:
            self._on_cycle(cycle)
        else:
            sys.stderr.write(report)

    def __enter__(self) -> DeadlockDetector:
        self._native.watch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._native.stop()

    def name_stream(self, stream: Any, name: str) -> None:
        """Name a stream of torch, or one by its handle, for reports."""
        self._native.name_stream(_handle(stream), name)

    def record(self, stream: int, event: int) -> None:
        """Note that a stream records an event, for runtimes that opkit does not know."""
        self._native.record(stream, event)

    def wait(self, stream: int, event: int) -> None:
        """Note that a stream waits for an event."""
        self._native.wait(stream, event)

    @property
    def unrecorded(self) -> list[Link]:
        """Waits whose event nobody has recorded yet."""
        return [Link(**link) for link in self._native.unrecorded()]

    @staticmethod
    def check_deadlock(tasks: Iterable[Task]) -> list[Cycle]:
        """Return every circle of a program that is given as data, by networkx.

        Args:
            tasks: in the order in which the program issues them.
        Raises:
            UsageError: an action is neither `record` nor `wait`.
            SetupError: networkx is not installed.
        """
        return _cycles_of(list(tasks))


def _handle(stream: Any) -> int:
    # torch's streams are told apart by their device and number: torch_npu/csrc/runtime/device.cpp.
    number = getattr(stream, "stream_id", None)
    return int(stream) if number is None else (stream.device_index + 1) << 48 | int(number)


def dependency_graph(tasks: Sequence[Task]) -> networkx.DiGraph:
    """Return what runs after what: an edge from each task to those it needs; nodes are places."""
    try:
        import networkx
    except ImportError as err:
        raise SetupError(
            "check_deadlock needs networkx, which is not installed", help="pip install networkx"
        ) from err
    graph = networkx.DiGraph()
    before: dict[str, int] = {}
    recorded: dict[str, int] = {}
    early: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        if task.action not in ("record", "wait"):
            raise UsageError(f'task {place}: "{task.action}" is neither "record" nor "wait"')
        graph.add_node(place)
        if task.stream in before:
            graph.add_edge(place, before[task.stream])
        before[task.stream] = place
        if task.action == "record":
            recorded[task.event] = place
            for wait in early.pop(task.event, []):
                graph.add_edge(wait, place)
        elif task.event in recorded:
            graph.add_edge(place, recorded[task.event])
        else:
            early.setdefault(task.event, []).append(place)
    return graph


def _cycles_of(tasks: Sequence[Task]) -> list[Cycle]:
    graph = dependency_graph(tasks)
    import networkx

    found = []
    for nodes in networkx.simple_cycles(graph):
        links = []
        for place, follower in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
            task, other = tasks[place], tasks[follower]
            if task.action == "wait" and other.action == "record" and task.event == other.event:
                links.append(Link(task.stream, task.event, f"task {place}", f"task {follower}"))
        first = min(range(len(links)), key=lambda i: int(links[i].wait.split()[1]))
        turned = (*links[first:], *links[:first])
        found.append(Cycle(turned, _report(turned)))
    return sorted(found, key=lambda cycle: (len(cycle.links), cycle.streams))


def _report(links: Sequence[Link]) -> str:
    rows = [(link.stream, link.event, link.wait, link.record) for link in links]
    return str(native().deadlock_report(rows))


def calling_line() -> tuple[str, int] | None:
    """Return the innermost line of Python outside opkit and torch; None where there is none."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and "/torch/" not in name and not name.startswith("<"):
            return name, frame.f_lineno
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
