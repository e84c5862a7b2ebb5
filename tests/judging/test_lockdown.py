"""What a process has given up cannot be had again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_SCRIPT = """
import errno, os, socket, threading
import numpy
from opkit.judging.lockdown import Limits, give_up

give_up(Limits(memory_mib=1024, file_mib=1), processes={processes}, fatal={fatal})
def tried(name, action):
    try:
        action()
        print(name, "done", flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
    except MemoryError:
        print(name, "no memory", flush=True)
thread = threading.Thread(target=print, args=("thread", "done"))
thread.start()
thread.join()
tried("memory", lambda: numpy.zeros(2 << 30, "u1") + 1)
tried("fork", lambda: os.fork() or os._exit(0))
tried("socket", socket.socket)
tried("exec", lambda: os.execv("/bin/true", ["true"]))
"""


def _run(*, processes: bool, fatal: bool) -> subprocess.CompletedProcess[str]:
    text = _SCRIPT.format(processes=processes, fatal=fatal)
    argv = [sys.executable, "-c", text]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no filter here")
def test_refused_calls_fail_and_threads_go_on() -> None:
    done = _run(processes=False, fatal=False)
    assert done.stdout.split("\n")[:-1] == [
        *("thread done", "memory no memory", "fork EPERM", "socket EPERM", "exec EPERM")
    ]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no filter here")
def test_a_fatal_filter_ends_the_process_by_its_own_signal() -> None:
    done = _run(processes=False, fatal=True)
    assert done.stdout.endswith("no memory\n")
    assert done.returncode == -31


def test_a_build_may_start_processes_and_is_bounded_all_the_same() -> None:
    done = _run(processes=True, fatal=True)
    assert "memory no memory" in done.stdout
    assert "fork done" in done.stdout
    assert done.returncode == 0
