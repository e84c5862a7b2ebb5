"""Processes of this machine, each with one case at a time."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe as make_pipe
from pathlib import Path
from typing import Any, TypeAlias, cast

from opkit.errors import OperatorError, OpkitError, SetupError
from opkit.executor.crew import Crew
from opkit.executor.messages import Garbage, Incoming, packed
from opkit.executor.plain import Plain, from_bytes
from opkit.executor.records import read_error, read_record
from opkit.executor.work import ATTEMPTS, NOT_OURS, Lost, Work
from opkit.executor.worker import IDLE, MARK, MARK_BYTES, STARTING
from opkit.processes import signal_group

__all__ = ["Cage", "LocalCrew", "LocalExecutor", "bare"]

Cage: TypeAlias = Callable[[list[str]], list[str]]
"""From the command of a worker to the command that starts it in a sandbox."""


def bare(argv: list[str]) -> list[str]:
    """Return the command as it is: a worker without a sandbox that is not trusted either."""
    return argv


_AHEAD_SECONDS = 0.1
"""Work that a process is given ahead, so that it never waits for us."""
_MOST_AHEAD = 512
_GRACE_SECONDS = 5.0
_GRACE_AT_ONCE_SECONDS = 1.5
"""What a process may take to clean up when it is ended in the middle of a case."""
_LOOK_EVERY_SECONDS = 0.25
_TIME_LIMIT = 124
"""The exit code of a process whose launch is in a call that never comes back, see `time_limit`."""
_START_SECONDS = 120.0
"""What a process may take to begin, over the limit of a case."""


class LocalExecutor:
    """A number of processes.

    `cage` turns the command that starts a worker into one that starts it in a sandbox. Such a
    worker's word is not taken for more than it is, nor that of work which says what its `answers`
    are: of its results only plain values are read (numbers, texts, bytes, lists, dicts), as reading
    a pickle of classes would run what it names.
    """

    def __init__(self, workers: int, *, cage: Cage | None = None) -> None:
        self._workers = workers
        self._cage = cage

    @property
    def workers(self) -> int:
        """How many cases run at a time."""
        return self._workers

    def open(self, work: Work) -> LocalCrew:
        """Return processes for a piece of work; they are started when there are cases."""
        return LocalCrew(work, self._workers, cage=self._cage)


@dataclass(eq=False)
class _Process:
    """One worker, and the cases that it has and we have no results of."""

    popen: subprocess.Popen[bytes]
    pipe: Connection
    mark: mmap.mmap
    incoming: Incoming
    waiting: dict[int, None] = field(default_factory=dict)
    given: float = 0.0
    """When it last got cases, or gave results."""

    def running(self) -> tuple[int, float]:
        """Return the case it runs, `IDLE` or `STARTING`, and since when."""
        index, since = MARK.unpack_from(self.mark, 0)
        return index, since

    def hang_up(self) -> None:
        """Close the pipe."""
        self.incoming.detach()
        self.pipe.close()

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it: it would run no case until another lets it."""
        with contextlib.suppress(ChildProcessError):
            options = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.popen.pid, options) is not None
        return False

    def end(self) -> None:
        """End it, and what it has started and not waited for."""
        signal_group(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        self.mark.close()


class LocalCrew(Crew):
    """Processes that have begun one piece of work."""

    def __init__(
        self,
        work: Work,
        workers: int,
        *,
        folders: Mapping[str, Path] | None = None,
        cage: Cage | None = None,
    ) -> None:
        """Take the work; `folders` say where its folders lie when not where they were made."""
        self._cage = cage
        self._answers = Plain if cage and work.answers is None else work.answers
        places = folders or {name: folder.path for name, folder in work.folders.items()}
        text = pickle.dumps((work.begin, work.setup, dict(places)))
        form = "pickle" if self._answers is None else "record"
        form = "plain" if self._answers is Plain else form
        hidden = (tuple(work.hidden), tuple(places.values()))
        self._hello = pickle.dumps((list(sys.path), form, hidden, text))
        self._seconds = work.seconds
        self._most_bytes = work.most_bytes
        self._workers = workers
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()
        self._mean_seconds = 1.0
        self._failed_starts = 0
        self.ended = 0
        """Processes that ended before their cases did."""

    def stream(self, cases: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield results as they come; see `Crew.stream`."""
        rest = deque(range(len(cases)))
        failures: dict[int, int] = {}
        missing = len(cases)
        for process in self._processes:
            process.waiting.clear()
        try:
            while missing:
                self._hire(len(rest))
                for process in self._processes:
                    self._give(process, rest, cases)
                for process in self._ready():
                    for index, result in self._collect(process, rest, failures):
                        missing -= 1
                        yield index, result
                for index, result in self._end_stuck(rest, failures):
                    missing -= 1
                    yield index, result
        except BaseException:
            # Ctrl-C, a failing case, a caller that has seen enough: what runs now is of no use.
            self.close(at_once=True)
            raise

    def close(self, *, at_once: bool = False) -> None:
        """End the processes."""
        processes, self._processes = self._processes, []
        for process in processes:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(process.pipe)
            process.hang_up()
            if at_once:
                process.popen.terminate()
        deadline = time.monotonic() + (_GRACE_AT_ONCE_SECONDS if at_once else _GRACE_SECONDS)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.popen.wait(max(0.0, deadline - time.monotonic()))
            process.end()

    def _hire(self, cases: int) -> None:
        busy = sum(bool(process.waiting) for process in self._processes)
        while len(self._processes) < min(self._workers, busy + cases):
            process = _start(self._hello, self._cage, self._most_bytes)
            self._processes.append(process)
            self._selector.register(process.pipe, selectors.EVENT_READ, process)

    def _give(self, process: _Process, rest: deque[int], cases: Sequence[Any]) -> None:
        ahead = min(_MOST_AHEAD, int(_AHEAD_SECONDS / self._mean_seconds))
        # Towards the end, even shares: none waits while another has a queue.
        ahead = max(1, min(ahead, len(rest) // (2 * self._workers) + 1))
        if len(process.waiting) > ahead // 2 or not rest:
            return
        chosen = [rest.popleft() for _ in range(min(ahead - len(process.waiting), len(rest)))]
        if not process.waiting:
            process.given = time.monotonic()
        process.waiting.update(dict.fromkeys(chosen))
        text = packed([(index, packed(cases[index])) for index in chosen])
        # A process that has ended is found by its pipe.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.pipe.send_bytes(text)

    def _ready(self) -> list[_Process]:
        return [key.data for key, _ in self._selector.select(_LOOK_EVERY_SECONDS)]

    def _collect(
        self, process: _Process, rest: deque[int], failures: dict[int, int]
    ) -> Iterator[tuple[int, Any]]:
        try:
            data = process.incoming.read()
            if data is None:
                return
            message = self._message(data)
        except (EOFError, ConnectionResetError):
            code = process.popen.wait()
            # Sandboxes say it as shells do.
            code = 128 - code if self._cage and code > 128 else code
            reason = f"signal {-code}" if code < 0 else f"exit code {code}"
            reason = "the limit of its time" if code == _TIME_LIMIT else reason
            # Memory runs out and somebody kills: that may pass. What exits does so again.
            attempts = ATTEMPTS if code < 0 else 1
            yield from self._lose(process, reason, rest, failures, attempts)
            return
        except Garbage:
            yield from self._lose_writer(process, rest, failures)
            return
        if isinstance(message, OpkitError):
            raise message
        now = time.monotonic()
        mean = (now - process.given) / max(1, len(message))
        self._mean_seconds = max(1e-6, 0.5 * self._mean_seconds + 0.5 * mean)
        process.given = now
        for index, each in message:
            try:
                result = self._result(each)
            except Garbage:
                yield from self._lose_writer(process, rest, failures)
                return
            if isinstance(result, OpkitError):
                raise result
            if index in process.waiting:
                del process.waiting[index]
                yield index, result

    def _message(self, data: bytes | bytearray) -> OpkitError | list[tuple[int, Any]]:
        """Return the results in a message, each with its case's number, or why none will come."""
        try:
            if self._answers is None:
                return cast("OpkitError | list[tuple[int, Any]]", pickle.loads(data))
            found = from_bytes(data)
            if isinstance(found, dict):
                return read_error(found)
            if isinstance(found, list) and all(map(_is_numbered, found)):
                return found
        # What is no pickle is anything to the library.
        except Exception as error:
            raise Garbage from error
        raise Garbage

    def _result(self, data: Any) -> Any:
        """Return one result, or the error that came in its place."""
        try:
            if self._answers is None:
                return pickle.loads(data)
            found = from_bytes(data)
            if isinstance(found, dict) and set(found) == {"value"}:
                value = found["value"]
                return value if self._answers is Plain else read_record(self._answers, value)
            return read_error(found)
        except Exception as error:
            raise Garbage from error

    def _lose_writer(
        self, process: _Process, rest: deque[int], failures: dict[int, int]
    ) -> Iterator[tuple[int, Any]]:
        """End a process through whose pipe something else than opkit has spoken."""
        process.popen.kill()
        process.popen.wait()
        running, since = process.running()
        if running == IDLE and process.waiting:
            # It is done with the case whose result cannot be read.
            MARK.pack_into(process.mark, 0, next(iter(process.waiting)), since)
        yield from self._lose(process, NOT_OURS, rest, failures, 1)

    def _lose(
        self,
        process: _Process,
        reason: str,
        rest: deque[int],
        failures: dict[int, int],
        attempts: int = ATTEMPTS,
    ) -> Iterator[tuple[int, Any]]:
        """Put a dead process's cases back; yield the one that it ran if that was once too often."""
        running, _ = process.running()
        if running not in (IDLE, STARTING) and running not in process.waiting and process.waiting:
            # Somebody has written over the mark; cases run in their order.
            running = next(iter(process.waiting))
        self._selector.unregister(process.pipe)
        process.hang_up()
        process.end()
        self._processes.remove(process)
        self.ended += 1
        if running in process.waiting:
            failures[running] = failures.get(running, 0) + 1
            if failures[running] >= attempts:
                del process.waiting[running]
                yield running, Lost(reason, failures[running])
        elif process.waiting:
            # At the start, or between cases, by what an earlier one has left running.
            self._failed_starts += 1
            if self._failed_starts >= ATTEMPTS:
                raise _never_at_work(reason, is_starting=running == STARTING)
        rest.extendleft(reversed(process.waiting))

    def _end_stuck(self, rest: deque[int], failures: dict[int, int]) -> Iterator[tuple[int, Any]]:
        now = time.monotonic()
        for process in list(self._processes):
            if not process.waiting:
                continue
            running, since = process.running()
            limit = self._seconds + (_START_SECONDS if running == STARTING else 0.0)
            # What never ends does so again; what was stopped from outside need not be.
            attempts = 1
            if process.is_stopped():
                reason, attempts = "a signal that stops it", ATTEMPTS
            elif self._seconds and now - max(since, process.given) > limit:
                reason = f"the limit of {self._seconds:g} s"
            else:
                continue
            # SIGKILL: a stopped process takes no other.
            process.popen.send_signal(signal.SIGKILL)
            process.popen.wait()
            if running == STARTING:
                self._failed_starts = ATTEMPTS - 1
            yield from self._lose(process, reason, rest, failures, attempts)


def _is_numbered(each: Any) -> bool:
    return (
        isinstance(each, tuple)
        and len(each) == 2
        and type(each[0]) is int
        and isinstance(each[1], memoryview)
    )


def _never_at_work(reason: str, *, is_starting: bool) -> OpkitError:
    """Return the error of workers that end while they run no case."""
    when = "before they run anything" if is_starting else "between cases"
    message = f"worker processes end by {reason} {when}"
    if is_starting and reason.startswith("signal"):
        return SetupError(message, help="is this machine's memory used up?")
    return OperatorError(
        message,
        help="look for exit, abort or kill in the golden and the host code, where they are loaded,"
        " and in what the kernel leaves running",
    )


def _start(hello: bytes, cage: Cage | None, most_bytes: int) -> _Process:
    ours, theirs = make_pipe()
    mark = os.memfd_create("opkit-worker")
    try:
        os.ftruncate(mark, MARK_BYTES)
        shared = mmap.mmap(mark, MARK_BYTES)
        MARK.pack_into(shared, 0, STARTING, time.monotonic())
        numbers = (theirs.fileno(), mark)
        # Not forked: the emulator has threads, and locks with them. -P keeps the working
        # directory's files from standing for modules.
        argv = [sys.executable, "-m", "opkit.executor.worker", *map(str, numbers)]
        popen = subprocess.Popen(
            cage(argv) if cage else argv,
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
            # What nobody trusts must not speak for the command either.
            stdout=subprocess.DEVNULL if cage else None,
            stderr=subprocess.DEVNULL if cage else None,
            # A group of its own: a kernel that kills its group does not reach us, and all that it
            # has started goes with it.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError as err:
        ours.close()
        raise SetupError(f"no worker process can be started: {err.strerror or err}") from err
    finally:
        theirs.close()
        os.close(mark)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        ours.send_bytes(hello)
    incoming = Incoming(ours, most_bytes)
    return _Process(popen, ours, shared, incoming, given=time.monotonic())
