"""The workers of each version: who is free, who is replaced, and a thread that looks after all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from opkit import log
from opkit.service.settings import LimitSettings
from opkit.service.workers.arguments import Attributes, Inputs, Rule
from opkit.service.workers.attempts import AttemptFailed, Ran
from opkit.service.workers.modelled import Modelled
from opkit.service.workers.process import WorkerProcess
from opkit.service.workers.shared_memory import Tensor

__all__ = ["Supervisor", "WorkerPool"]

_TICK_SECONDS = 0.05
_SHORT_LIFE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 30.0


class WorkerPool:
    """The processes of one version, or of one reference."""

    def __init__(self, folder: Path, limits: LimitSettings, *, reference: bool = False) -> None:
        """Prepare; a Supervisor starts the processes."""
        self._folder = folder
        self._limits = limits
        self._reference = reference
        self._changed = threading.Condition()
        self._idle: list[WorkerProcess] = []
        self._starting: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []
        self._begin_at = 0.0
        self._pause_seconds = 0.0
        self._is_closed = False
        self.restarts = 0
        self.problem = ""

    @property
    def is_ready(self) -> bool:
        with self._changed:
            return len(self._all) > len(self._starting)

    @property
    def memory_bytes(self) -> int:
        with self._changed:
            workers = list(self._all)
        return sum(worker.memory_bytes for worker in workers)

    def run(self, inputs: Inputs, attributes: Attributes, seconds: float) -> Ran:
        deadline = time.monotonic() + seconds
        with self._worker(deadline) as worker:
            left = deadline - time.monotonic()
            reply = worker.ask("run", inputs, attributes, seconds=left)
            outputs = worker.fetch(reply.get("outputs"))
            return Ran(outputs, float(reply.get("seconds", 0.0)), bool(reply.get("odd")))

    def judge(
        self,
        inputs: Inputs,
        attributes: Attributes,
        outputs: Sequence[Tensor],
        rule: Rule,
        seconds: float,
    ) -> str:
        deadline = time.monotonic() + seconds
        with self._worker(deadline) as worker:
            left = deadline - time.monotonic()
            reply = worker.ask(
                "judge", inputs, attributes, seconds=left, outputs=outputs, rule=rule
            )
            return str(reply.get("wrong", "no verdict"))

    def model(self, inputs: Inputs, attributes: Attributes, seconds: float) -> Modelled:
        deadline = time.monotonic() + seconds
        with self._worker(deadline) as worker:
            left = deadline - time.monotonic()
            reply = worker.ask("model", inputs, attributes, seconds=left)
            return Modelled(**reply["modelled"])

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            workers, self._all = self._all, []
            self._idle, self._starting = [], []
            self._changed.notify_all()
        for worker in workers:
            worker.close()

    def wait_until_ready(self, seconds: float) -> bool:
        """Wait for the first worker; false where there is none in that time, or it cannot load."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while len(self._all) <= len(self._starting) and not self.problem:
                left = deadline - time.monotonic()
                if left <= 0 or self._is_closed:
                    return False
                self._changed.wait(left)
            return not self.problem

    def look_after(self) -> None:
        """Replace workers that have ended, end those that hold too much; called again and again."""
        with self._changed:
            if self._is_closed:
                return
            gone = [worker for worker in self._idle + self._starting if not worker.is_alive]
            starting = [worker for worker in self._starting if worker not in gone]
            running = [worker for worker in self._all if worker not in self._starting]
        for worker in starting:
            if worker.greeted():
                self._welcome(worker)
            elif worker.problem:
                gone.append(worker)
        for worker in gone:
            self._forget(worker)
        for worker in running:
            if worker.memory_bytes > worker.first_bytes + self._limits.memory_bytes:
                worker.end("memory")
        self._fill()

    @contextmanager
    def _worker(self, deadline: float) -> Iterator[WorkerProcess]:
        worker = self._take(deadline)
        try:
            yield worker
        finally:
            self._give_back(worker)

    def _give_back(self, worker: WorkerProcess) -> None:
        with self._changed:
            is_fit = worker.is_alive and not worker.why_ended and worker in self._all
            if is_fit:
                self._idle.append(worker)
                self._changed.notify()
        if not is_fit:
            self._forget(worker)

    def _take(self, deadline: float) -> WorkerProcess:
        with self._changed:
            while not self._idle:
                left = deadline - time.monotonic()
                # Somebody else's call may end in time; a worker that starts may take too long. For
                # a reference that has died calls wait: nothing else can judge an answer.
                waits = self._reference and not self.problem
                none_runs = len(self._all) <= len(self._starting)
                if left <= 0 or self._is_closed or (none_runs and not waits):
                    why = self.problem or "no worker is ready"
                    raise AttemptFailed("unavailable", why)
                self._changed.wait(left)
            return self._idle.pop()

    def _welcome(self, worker: WorkerProcess) -> None:
        with self._changed:
            self.problem = ""
            self._starting.remove(worker)
            self._idle.append(worker)
            self._changed.notify_all()

    def _forget(self, worker: WorkerProcess) -> None:
        with self._changed:
            if worker not in self._all:
                return
            self._all.remove(worker)
            for workers in (self._idle, self._starting):
                if worker in workers:
                    workers.remove(worker)
            self.problem = worker.problem
            self.restarts += 1
            now = time.monotonic()
            short = now - worker.started_at < _SHORT_LIFE_SECONDS or bool(worker.problem)
            doubled = min(_LONGEST_PAUSE_SECONDS, max(0.5, 2 * self._pause_seconds))
            self._pause_seconds = doubled if short else 0.0
            self._begin_at = now + self._pause_seconds
            self._changed.notify_all()
        if not self._is_closed:
            what = "a reference" if self._reference else "a version"
            why = worker.why_ended or worker.problem or "it ended by itself"
            log.error("SERVICE", f"the worker {worker.pid} of {what} is replaced: {why}")
        worker.close()

    def _fill(self) -> None:
        while True:
            with self._changed:
                is_full = len(self._all) >= self._limits.workers
                if self._is_closed or is_full or time.monotonic() < self._begin_at:
                    return
                try:
                    worker = WorkerProcess(self._folder, self._limits, reference=self._reference)
                except OSError as err:
                    # No process or memory to be had now: again a little later.
                    self.problem = f"no process for it: {err}"
                    self._begin_at = time.monotonic() + 1.0
                    return
                self._all.append(worker)
                self._starting.append(worker)


class Supervisor:
    """One thread that starts and replaces the workers of all pools.

    Linux ends the workers with the thread that has started them, so that is never a passing one.
    """

    def __init__(self) -> None:
        self._pools: list[WorkerPool] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="opkit-supervisor", daemon=True)
        self._thread.start()

    def add(self, pool: WorkerPool) -> None:
        """Start a pool's workers."""
        with self._lock:
            self._pools.append(pool)
        self._wake.set()

    def remove(self, pool: WorkerPool) -> None:
        """End a pool's workers."""
        with self._lock:
            self._pools.remove(pool)
        pool.close()

    def close(self) -> None:
        """End all workers, and the thread."""
        self._is_over = True
        self._wake.set()
        self._thread.join()
        for pool in self._pools:
            pool.close()

    def _run(self) -> None:
        while not self._is_over:
            with self._lock:
                pools = list(self._pools)
            for pool in pools:
                pool.look_after()
            self._wake.wait(_TICK_SECONDS)
            self._wake.clear()
