"""Files that a process can no longer read: a reference that kernels and host code are judged by.

Landlock, which Linux has from 5.13 on, restricts a process and all that it starts to files below
some folders. There are no rules for what is refused, so all folders beside the hidden files get one
that allows them. The restricted process reads no other's memory either.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Collection
from pathlib import Path

__all__ = ["can_hide_files", "hide_files"]

# Of every architecture that opkit runs on. Source: landlock(7) and its pages.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1  # LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH
_READ_FILE = 1 << 2  # LANDLOCK_ACCESS_FS_READ_FILE
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of prctl(2)


def can_hide_files() -> bool:
    """Whether this machine can."""
    return int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)) > 0


def hide_files(paths: Collection[Path], *, but: Collection[Path] = ()) -> bool:
    """Hide files, and all in folders, from this process for good; return whether it can be done.

    A file that comes into being later, side by side with one of the folders that lead to what is
    hidden, cannot be read either. Threads that there are already are not restricted.

    Args:
        but: folders that stay readable, also inside of a hidden one.
    """
    hidden = {path.resolve() for path in paths if path.exists()}
    if not hidden or not can_hide_files():
        return False
    libc = _libc()
    handled = ctypes.create_string_buffer(struct.pack("=Q", _READ_FILE), 8)
    rules = libc.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(8), 0)
    if rules < 0:
        return False
    try:
        _allow_beside(Path("/"), hidden, {up for path in hidden for up in path.parents}, rules)
        for kept in but:
            _allow(kept.resolve(), rules)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return int(libc.syscall(_RESTRICT_SELF, rules, 0)) == 0
    finally:
        os.close(rules)


def _allow_beside(folder: Path, hidden: Collection[Path], above: Collection[Path], to: int) -> None:
    """Allow all in a folder that leads to what is hidden, but for that."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            path = folder / entry.name
            if path in hidden or entry.is_symlink():
                # Where a link leads to, another rule says.
                continue
            if path in above:
                _allow_beside(path, hidden, above, to)
            else:
                _allow(path, to)


def _allow(path: Path, rules: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # Packed: an int64 and an int32.
        rule = ctypes.create_string_buffer(struct.pack("=Qi", _READ_FILE, file), 12)
        _libc().syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(file)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
