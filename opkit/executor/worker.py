"""A worker process of the local executor: reads cases from a pipe, writes results to it.

Started as `python -m opkit.executor.worker PIPE MARK`; both are numbers of open files. MARK is
shared memory in which it says which case it runs since when, so that whoever finds it dead or stuck
knows which.
"""

from __future__ import annotations

import mmap
import pickle
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

from opkit.errors import OpkitError, Terminated
from opkit.executor.hiding import hide_files
from opkit.executor.messages import packed, send
from opkit.executor.plain import to_bytes
from opkit.executor.records import plain_error, plain_record
from opkit.executor.work import close_runner, portable_error
from opkit.processes import end_with_parent, termination_unwinds

__all__ = ["IDLE", "MARK", "MARK_BYTES", "STARTING", "main"]

MARK = struct.Struct("=qd")
"""The number of the case that runs, or one of the next two; and since when, monotonic clock."""
MARK_BYTES = mmap.PAGESIZE
IDLE = -1
STARTING = -2

_RESULTS_EVERY_SECONDS = 0.02


def main(pipe_number: int, mark_number: int) -> None:
    """Run cases until the pipe closes."""
    # Ctrl-C is for the process that asked for the work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(signal.SIGKILL)
    try:
        with termination_unwinds():
            _run(pipe_number, mark_number)
    except Terminated:
        # What the case has started is ended by now.
        signal.raise_signal(signal.SIGTERM)


def _run(pipe_number: int, mark_number: int) -> None:
    pipe = Connection(pipe_number)
    mark = mmap.mmap(mark_number, MARK_BYTES)
    ready: list[tuple[int, bytes]] = []
    run = None
    try:
        path, form, (hidden, kept), text = pickle.loads(pipe.recv_bytes())
        pack_all, pack = _FORMS[form]
        sys.path[:] = path
        if hidden:
            hide_files(hidden, but=kept)
        begin, setup, folders = pickle.loads(text)
        try:
            run = begin(setup, folders)
        except Exception as error:
            pipe.send_bytes(pack(portable_error(error, traceback.format_exc())))
            raise SystemExit(0) from error
        sent = time.monotonic()
        while True:
            if ready and (not pipe.poll() or time.monotonic() - sent > _RESULTS_EVERY_SECONDS):
                send(pipe, pack_all(ready))
                ready, sent = [], time.monotonic()
            if not ready:
                MARK.pack_into(mark, 0, IDLE, time.monotonic())
            for index, case in pickle.loads(pipe.recv_bytes()):
                MARK.pack_into(mark, 0, index, time.monotonic())
                try:
                    result = pack(run(pickle.loads(case)))
                except Exception as error:
                    result = pack(portable_error(error, traceback.format_exc()))
                ready.append((index, result))
                now = time.monotonic()
                if now - sent > _RESULTS_EVERY_SECONDS:
                    send(pipe, pack_all(ready))
                    ready, sent = [], now
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # Whoever asked is gone, or has what it wanted.
        return
    finally:
        close_runner(run)


def _packed_plain(result: object) -> bytes:
    if isinstance(result, OpkitError):
        return to_bytes(plain_error(result))
    return to_bytes({"value": result})


def _packed_record(result: object) -> bytes:
    return _packed_plain(result if isinstance(result, OpkitError) else plain_record(result))


def _packed_all(ready: list[tuple[int, bytes]]) -> bytes:
    return to_bytes([(index, memoryview(result)) for index, result in ready])


_FORMS: dict[str, tuple[Callable[[list[tuple[int, bytes]]], bytes], Callable[[object], bytes]]] = {
    "pickle": (packed, packed),
    "plain": (_packed_all, _packed_plain),
    "record": (_packed_all, _packed_record),
}
"""How results, and each of them, become a message."""


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
