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
from multiprocessing.connection import Connection

from opkit.errors import Terminated
from opkit.executor.messages import packed, send
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
        path, text = pickle.loads(pipe.recv_bytes())
        sys.path[:] = path
        begin, setup, folders = pickle.loads(text)
        try:
            run = begin(setup, folders)
        except Exception as error:
            pipe.send_bytes(pickle.dumps(portable_error(error, traceback.format_exc())))
            raise SystemExit(0) from error
        sent = time.monotonic()
        while True:
            if ready and (not pipe.poll() or time.monotonic() - sent > _RESULTS_EVERY_SECONDS):
                send(pipe, packed(ready))
                ready, sent = [], time.monotonic()
            if not ready:
                MARK.pack_into(mark, 0, IDLE, time.monotonic())
            for index, case in pickle.loads(pipe.recv_bytes()):
                MARK.pack_into(mark, 0, index, time.monotonic())
                try:
                    result = run(pickle.loads(case))
                except Exception as error:
                    result = portable_error(error, traceback.format_exc())
                ready.append((index, packed(result)))
                now = time.monotonic()
                if now - sent > _RESULTS_EVERY_SECONDS:
                    send(pipe, packed(ready))
                    ready, sent = [], now
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # Whoever asked is gone, or has what it wanted.
        return
    finally:
        close_runner(run)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
