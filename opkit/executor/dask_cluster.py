"""A Dask cluster: Dask places the work, moves what it needs and notices lost machines."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import hashlib
import pickle
import queue
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import opkit
from opkit.errors import OpkitError, SetupError
from opkit.executor.crew import Crew
from opkit.executor.dask_tasks import as_it_is, close_crews, run_chunk, version
from opkit.executor.work import Lost, Work, pack

Client = Any
Future = Any
"""Classes of `distributed`, which is optional and untyped."""

__all__ = ["DaskCrew", "DaskExecutor"]

_CHUNK_SECONDS = 0.5
"""Work of one task: a task costs the scheduler about a millisecond."""
_MOST_IN_CHUNK = 1000
_CHUNKS_AHEAD = 2
"""Tasks for each worker at a time: one runs, one waits on the spot."""
_PATIENCE_SECONDS = 60.0
_CONNECT_SECONDS = 10.0


@dataclass(eq=False)
class _Chunk:
    """Some cases, and the task that runs them."""

    numbers: list[int]
    future: Future
    since: float


class DaskExecutor:
    """A cluster whose scheduler listens at an address."""

    def __init__(self, address: str, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        """Connect.

        Args:
            address: such as `tcp://10.0.0.1:8786`.
            patience_seconds: how long a worker that has tasks of ours may not be heard of.
        Raises:
            SetupError: Dask is not installed, nothing listens there, or the workers lack this
                opkit.
        """
        try:
            import distributed  # noqa: F401
        except ImportError as err:
            raise SetupError(
                "dask: needs Dask's distributed", help='install it: pip install "opkit[scale]"'
            ) from err
        self._address = address
        self._patience_seconds = patience_seconds
        # Asked once, so that what is missing is told before anything is built.
        client = _connect(address)
        try:
            self._workers = _checked_workers(client, address)
        finally:
            client.close()

    @property
    def workers(self) -> int:
        """Threads of the cluster's workers when it was asked; it may grow and shrink."""
        return self._workers

    def open(self, work: Work) -> DaskCrew:
        """Return the cluster's workers for a piece of work."""
        client = _connect(self._address)
        return DaskCrew(client, work, patience_seconds=self._patience_seconds)


def _connect(address: str) -> Client:
    import distributed

    try:
        return distributed.Client(  # type: ignore[no-untyped-call, unused-ignore]
            address, timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, TimeoutError) as err:
        raise SetupError(
            f"no Dask scheduler answers at {address}: {err}",
            help="start one: dask scheduler; and on each machine: dask worker ADDRESS",
        ) from err


def _checked_workers(client: Client, address: str) -> int:
    """Return how many threads the workers have, once each has this opkit."""

    async def ask() -> dict[str, str]:
        # On the client's own loop: there it waits for nothing else.
        answers: dict[str, str] = await client.run(version)
        return answers

    asked = asyncio.run_coroutine_threadsafe(ask(), client.loop.asyncio_loop)
    try:
        found = asked.result(_CONNECT_SECONDS)
    except concurrent.futures.TimeoutError:
        # A worker that hangs never answers, and the others can still work.
        asked.cancel()
        found = {}
    except Exception as err:
        raise SetupError(
            f"the workers of {address} cannot import opkit: {err}",
            help=f"install opkit {opkit.__version__} where they run",
        ) from err
    if not client.nthreads():
        raise SetupError(
            f"the scheduler at {address} has no workers",
            help=f"start some: dask worker {address}",
        )
    for worker, other in found.items():
        if other != opkit.__version__:
            raise SetupError(
                f"{worker} has opkit {other}, and this is {opkit.__version__}",
                help="install the same version on every worker",
            )
    return max(1, int(sum(client.nthreads().values())))


class DaskCrew(Crew):
    """A cluster at one piece of work."""

    def __init__(self, client: Client, work: Work, *, patience_seconds: float) -> None:
        self._client = client
        self._patience_seconds = patience_seconds
        plain = pickle.dumps(work)
        # By who asked, too: ending this work must not end another's.
        self._key = f"{hashlib.sha256(plain).hexdigest()[:16]}-{uuid.uuid4().hex[:8]}"
        self._work = client.submit(as_it_is, plain, key=f"opkit-work-{self._key}")
        # Tasks and not scattered data: where their worker is lost, the scheduler makes them again.
        self._folders = []
        for folder in work.folders.values():
            digest = folder.digest()
            made = client.submit(_packed, digest, pack(folder), key=f"opkit-folder-{digest}")
            self._folders.append(made)
        self._mean_seconds = _CHUNK_SECONDS
        self._open: set[_Chunk] = set()
        self._looked = time.monotonic()

    def stream(self, cases: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield results as they come; see `Crew.stream`."""
        rest = deque(range(len(cases)))
        alone: deque[int] = deque()
        done: queue.SimpleQueue[_Chunk] = queue.SimpleQueue()
        try:
            while rest or alone or self._open:
                self._submit(rest, alone, cases, done)
                with contextlib.suppress(queue.Empty):
                    yield from self._collect(done.get(timeout=1.0), alone)
                self._let_go_of_silent()
        except BaseException:
            self.close(at_once=True)
            raise

    def close(self, *, at_once: bool = False) -> None:
        """End this work's processes on all workers, without waiting for one that hangs."""
        futures = [chunk.future for chunk in self._open]
        self._open.clear()
        with contextlib.suppress(OSError, TimeoutError):
            if self._client.status == "running":
                self._client.cancel(futures, force=True)
                self._client.run(close_crews, self._key, wait=False)
                self._client.close(timeout=_CONNECT_SECONDS)

    def _submit(
        self,
        rest: deque[int],
        alone: deque[int],
        cases: Sequence[Any],
        done: queue.SimpleQueue[_Chunk],
    ) -> None:
        threads = max(1, sum(self._client.nthreads().values()))
        while (rest or alone) and len(self._open) < threads * _CHUNKS_AHEAD:
            if alone:
                numbers = [alone.popleft()]
            else:
                size = min(_MOST_IN_CHUNK, int(_CHUNK_SECONDS / self._mean_seconds))
                size = max(1, min(size, len(rest) // (threads * _CHUNKS_AHEAD) + 1))
                numbers = [rest.popleft() for _ in range(min(size, len(rest)))]
            text = pickle.dumps([(number, cases[number]) for number in numbers])
            future = self._client.submit(
                run_chunk,
                self._key,
                self._work,
                text,
                *self._folders,
                key=f"opkit-chunk-{uuid.uuid4().hex}",
            )
            chunk = _Chunk(numbers, future, time.monotonic())
            self._open.add(chunk)
            future.add_done_callback(functools.partial(_put, done, chunk))

    def _collect(self, chunk: _Chunk, alone: deque[int]) -> Iterator[tuple[int, Any]]:
        future = chunk.future
        self._open.discard(chunk)
        if future.status == "finished":
            pairs = pickle.loads(future.result())
            spent = (time.monotonic() - chunk.since) / _CHUNKS_AHEAD / max(1, len(pairs))
            self._mean_seconds = max(1e-6, 0.5 * self._mean_seconds + 0.5 * spent)
            yield from pairs
            return
        error = future.exception() if future.status == "error" else None
        if isinstance(error, OpkitError):
            raise error
        if error is not None and type(error).__name__ != "KilledWorker":
            raise OpkitError(f"a Dask worker failed: {type(error).__name__}: {error}") from error
        if len(chunk.numbers) > 1:
            # One of them may be what ends machines: which, each alone will show.
            alone.extend(chunk.numbers)
        else:
            yield chunk.numbers[0], Lost("the end of Dask's worker")

    def _let_go_of_silent(self) -> None:
        """Take workers out of the cluster that hold tasks of ours and are no longer heard of.

        As Dask does by itself after five minutes by default: their tasks go to others.
        """
        now = time.monotonic()
        if now - self._looked < min(5.0, self._patience_seconds / 4):
            return
        self._looked = now
        keys = {chunk.future.key for chunk in self._open}
        # What all chunks read: whoever asks a silent worker for it waits as well.
        keys |= {future.key for future in (self._work, *self._folders)}
        self._client.run_on_scheduler(_remover(keys, self._patience_seconds))


def _remover(keys: set[str], patience_seconds: float) -> Callable[..., Awaitable[None]]:
    async def remove(dask_scheduler: Any) -> None:
        # A function within a function travels whole: the scheduler need not have opkit.
        from time import time as now

        for state in list(dask_scheduler.workers.values()):
            held = {str(task.key) for task in (*state.processing, *state.has_what)}
            if held & keys and now() - state.last_seen > patience_seconds:
                await dask_scheduler.remove_worker(state.address, stimulus_id="opkit-silent")

    return remove


def _put(done: queue.SimpleQueue[_Chunk], chunk: _Chunk, future: Future) -> None:
    done.put(chunk)


def _packed(digest: str, content: bytes) -> tuple[str, bytes]:
    return digest, content
