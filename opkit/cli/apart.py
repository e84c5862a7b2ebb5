"""Commands that run kernels do so in a process of their own; another one answers for the exit code.

A kernel, host code or a golden may end the process that it runs in, with any code. Whoever started
opkit must not take that for the end of the command. The watching process loads nothing but this.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from opkit.errors import OperatorError
from opkit.processes import end_with_parent

__all__ = ["KERNEL_COMMANDS", "run_apart"]

KERNEL_COMMANDS = frozenset(("test", "check", "profile", "debug", "tune", "compat", "compile"))
"""Commands of opkit that launch kernels, call host code or a golden. Not `run`, whose exit code is
the program's own, nor `serve`, which keeps those in workers."""

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_apart(run: Callable[[], int], report: Callable[[OperatorError], int]) -> int:
    """Return the exit code of `run`, which goes on in a child of this process.

    Args:
        run: what the child does; returns its exit code.
        report: prints an error and returns its exit code, in this process: the child has ended
            without saying that it was done.
    """
    if threading.active_count() > 1:
        # Locks that other threads hold would stay locked in the child.
        return run()
    watched = (*_PASSED_ON, signal.SIGCHLD)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    done, told = os.pipe()
    # Nobody who writes to all open files by chance, or on purpose, knows these.
    token = os.urandom(16)
    child = os.fork()
    if child == 0:
        os.close(done)
        end_with_parent(signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = run()
        os.write(told, token + bytes([code & 0xFF]))
        return code
    os.close(told)
    ended = os.waitstatus_to_exitcode(_wait(child, watched))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with os.fdopen(done, "rb", closefd=True) as pipe:
        os.set_blocking(pipe.fileno(), False)
        said = pipe.read(len(token) + 1)
    if said == token + bytes([ended & 0xFF]) and ended >= 0:
        return ended
    if -ended in _PASSED_ON:
        # As if it had been this process.
        signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    how = f"exit code {ended}" if ended >= 0 else f"signal {-ended}"
    return report(
        OperatorError(
            f"the process in which kernels run has ended by {how} before the command was done",
            help="look for exit, abort or kill in the kernel, its host code and its golden"
            + ("; or this machine's memory is used up" if ended == -signal.SIGKILL else ""),
        )
    )


def _wait(child: int, watched: tuple[int, ...]) -> int:
    """Return the status that a child ends with; signals to this process are passed on to it."""
    while True:
        signalled = signal.sigwaitinfo(watched)
        if signalled.si_signo == signal.SIGCHLD:
            process, status = os.waitpid(child, os.WNOHANG)
            if process == child:
                return status
        elif signalled.si_code <= 0:
            # From a process; what a terminal sends, it sends to the child as well.
            os.kill(child, signalled.si_signo)
