"""Where opkit keeps what it makes for itself, by the XDG base directory specification."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from opkit.errors import SetupError

__all__ = ["cache_folder", "filling_cache", "runtime_folder", "state_folder"]


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
