"""opkit: scaffold, build, test and profile AI-core operators without an NPU."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from os.path import abspath, dirname, exists, join

__all__ = ["__version__"]

__version__ = "0.1.0"


def _is_installed(folder: str) -> bool:
    """Whether a package has both its modules and its compiled parts there."""
    if not exists(join(folder, "__init__.py")):
        return False
    return any(exists(join(folder, "emulator", "_emulator" + end)) for end in EXTENSION_SUFFIXES)


def _step_aside() -> None:
    """Let the installed package give the modules where this one is only its source.

    Python looks into the folder that it is started in first, so in a checkout `python -m` and
    `python -c` find the source, which has no compiled parts. Where opkit is installed in editable
    mode, no other folder is whole either: then this is the package.
    """
    here = dirname(abspath(__file__))
    if _is_installed(here):
        return
    for entry in sys.path:
        folder = join(abspath(entry), "opkit")
        if folder != here and _is_installed(folder):
            __path__[:] = [folder]
            globals()["__file__"] = join(folder, "__init__.py")
            return


_step_aside()
