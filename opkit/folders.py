"""Where opkit keeps what it makes for itself, by the XDG base directory specification."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from opkit.errors import SetupError

__all__ = [
    "DEFAULT_MAX_BYTES",
    "cache_folder",
    "evict_oldest",
    "filling_cache",
    "folder_bytes",
    "runtime_folder",
    "state_folder",
]

DEFAULT_MAX_BYTES = 1 << 30
"""What a folder of the cache may hold."""
# Evict down to this part of the limit, so that not every use evicts.
_EVICT_TO = 0.8


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/opkit`, or `~/.cache/opkit`: what can be made again."""
    return (_given("XDG_CACHE_HOME") or Path.home() / ".cache") / "opkit"


@contextlib.contextmanager
def filling_cache(folder: Path) -> Iterator[None]:
    """Make a folder of the cache that files are put into inside the block.

    Raises:
        SetupError: it or what is in it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as err:
        raise SetupError(
            f"{folder} cannot be written: {err.strerror or err}",
            help="give another folder with XDG_CACHE_HOME",
        ) from err


def evict_oldest(entries: Iterable[tuple[int, int, Path]], *, max_bytes: int) -> int:
    """Delete the entries used longest ago while there are too many bytes; return how many.

    Args:
        entries: time of last use, bytes and path of each file or folder.
    """
    known = sorted(entries)
    total = sum(size for _, size, _ in known)
    if total <= max_bytes:
        return 0
    evicted = 0
    for _, size, path in known:
        if total <= max_bytes * _EVICT_TO:
            break
        with contextlib.suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            evicted += 1
        total -= size
    return evicted


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(above, name).lstat().st_size
    return total


def state_folder() -> Path:
    """Return `$XDG_STATE_HOME/opkit`, or `~/.local/state/opkit`: logs."""
    return (_given("XDG_STATE_HOME") or Path.home() / ".local/state") / "opkit"


def runtime_folder() -> Path:
    """Return `$XDG_RUNTIME_DIR/opkit`, else the cache: what ends with the user's processes."""
    runtime = _given("XDG_RUNTIME_DIR")
    return cache_folder() if runtime is None else runtime / "opkit"


def _given(variable: str) -> Path | None:
    # The specification says that a relative value is to be ignored.
    base = os.environ.get(variable, "")
    return Path(base) if base.startswith("/") else None
