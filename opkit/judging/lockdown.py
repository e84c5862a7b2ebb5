"""What a process gives up before it loads code that nobody trusts: memory, files, system calls.

A sandbox takes the network and the files away; this takes what remains. It holds for all threads of
the process, for good, and for whatever the process turns into. The filter of system calls is a
program of the kernel's own small machine (seccomp), loaded by the process itself: it is the last
thing that trusted code does there.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from dataclasses import dataclass

__all__ = ["Limits", "give_up"]


@dataclass(frozen=True)
class Limits:
    """What code that nobody trusts may use."""

    memory_mib: int = 4096
    """Memory of each process, in MiB."""
    seconds: float = 60.0
    """Wall time of the build and of each case; processor time of each process, twice as much."""
    file_mib: int = 64
    """Largest file that may be written, in MiB; there is only a scratch folder for it."""


_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of prctl(2)
_SET_FILTER, _ALL_THREADS = 1, 1  # SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC
_KILL, _ALLOW, _REFUSE = 0x80000000, 0x7FFF0000, 0x00050000  # SECCOMP_RET_*; with an errno
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = (
    0x20,
    0x15,
    0x35,
    0x45,
    0x06,
)  # BPF_* of linux/filter.h
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_THREAD = 0x00010000  # CLONE_THREAD


@dataclass(frozen=True)
class _Machine:
    """The numbers of one architecture. Source: the kernel's table of system calls."""

    architecture: int
    """AUDIT_ARCH_*."""
    seccomp: int
    clone: int
    clone3: int
    refused: tuple[int, ...]
    """fork, vfork, execve, execveat, socket, ptrace, process_vm_readv, process_vm_writev, unshare,
    setns, mount, bpf, perf_event_open, userfaultfd, io_uring_setup, pidfd_getfd."""


_MACHINES = {
    "x86_64": _Machine(
        *(0xC000003E, 317, 56, 435),
        (57, 58, 59, 322, 41, 101, 310, 311, 272, 308, 165, 321, 298, 323, 425, 438),
    ),
    "aarch64": _Machine(
        *(0xC00000B7, 277, 220, 435),
        (221, 281, 198, 117, 270, 271, 97, 268, 40, 280, 241, 282, 425, 438),
    ),
}


def give_up(limits: Limits, *, processes: bool, fatal: bool = True) -> None:
    """Give up what exceeds the limits and, unless `processes`, every way to other processes.

    Args:
        processes: leave system calls as they are: a build runs compilers.
        fatal: a refused system call ends the process by SIGSYS; else it fails as not permitted.
    """
    memory, file = limits.memory_mib << 20, limits.file_mib << 20
    seconds = max(1, int(2 * limits.seconds))
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CPU, seconds),
    ):
        before = resource.getrlimit(kind)[1]
        most = most if before == resource.RLIM_INFINITY else min(most, before)
        resource.setrlimit(kind, (most, most))
    if not processes:
        _filter_calls(_KILL if fatal else _REFUSE | _EPERM)


def _filter_calls(refusal: int) -> None:
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return
    program = _program(machine, refusal)
    memory = ctypes.create_string_buffer(program)

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    given = Program(len(program) // 8, ctypes.addressof(memory))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if library.syscall(machine.seccomp, _SET_FILTER, _ALL_THREADS, ctypes.byref(given)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"the filter of system calls cannot be set: {os.strerror(code)}")


def _program(machine: _Machine, refusal: int) -> bytes:
    """Return the filter: threads may begin, processes may not; all else but the refused goes on."""
    rows: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # Numbers of another table of the same processor (x32).
        (_AT_LEAST, 0, 1, 0x40000000),
        (_RETURN, 0, 0, _KILL),
        # Its arguments lie in memory, where a filter cannot look: libraries then take clone.
        (_EQUAL, 0, 1, machine.clone3),
        (_RETURN, 0, 0, _REFUSE | _ENOSYS),
    ]
    for number in machine.refused:
        rows += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refusal)]
    rows += [
        (_EQUAL, 1, 0, machine.clone),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _THREAD),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refusal),
    ]
    return b"".join(struct.pack("<HBBI", *row) for row in rows)
