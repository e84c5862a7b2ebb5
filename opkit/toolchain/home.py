"""A folder shaped like the vendor's toolkit: `include`, `lib64`, `bin`.

Projects that know nothing of the CMake package ASC name the toolkit by `ASCEND_HOME_PATH`, link its
libraries by name and expect `set_env.sh` to have been sourced. `find_home` makes the folder, once
for each installation; `home_variables` is what `set_env.sh` would have set.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from opkit import emulator
from opkit.errors import SetupError
from opkit.folders import cache_folder
from opkit.toolchain.compiler import find_compiler
from opkit.toolchain.driver_arguments import COVERED_LIBRARIES
from opkit.toolchain.own_command import OPKIT_COMMAND
from opkit.toolchain.program_start import write_program_start
from opkit.toolchain.toolkit import Toolkit

__all__ = ["CMAKE_DIR", "find_home", "home_variables"]

CMAKE_DIR = Path(__file__).parents[1] / "emulator" / "cmake"
_START_OBJECT = "opkit_start.o"
# For whoever loads libraries while it runs (dlopen, ctypes.CDLL): they are no linker scripts.
_LOADED = "lib"
_COMMANDS = {
    "opkit": OPKIT_COMMAND,
    # The compiler of the toolkit; the vendor's other commands are a distribution of their own.
    "bisheng": (*OPKIT_COMMAND, "cc"),
}
_COMPILER_FOLDERS = ("compiler/ccec_compiler", f"{platform.machine()}-linux/ccec_compiler")
"""Where build files look for the compiler, besides `bin`."""
_SET_ENV = """\
# To be sourced: makes this folder the toolkit of the shell.
eval "$({opkit} cc --env)"
"""


def find_home(*, cache_dir: Path | None = None) -> Path:
    """Return the toolkit folder of this installation of opkit, made where it is not there yet.

    Args:
        cache_dir: where to make it; the user's cache when None.
    Raises:
        SetupError: there is no compiler, the emulator is incomplete, or the cache cannot be
            written.
    """
    toolkit = Toolkit.installed()
    library = emulator.library_path()
    start = toolkit.program_start.read_bytes()
    parts = [
        _SET_ENV,
        *_COMPILER_FOLDERS,
        *(word for name, command in _COMMANDS.items() for word in (name, *command)),
        str(library),
        str(toolkit.include_dir),
        _LOADED,
        *sorted(COVERED_LIBRARIES),
    ]
    key = hashlib.sha256("\0".join(parts).encode() + start).hexdigest()[:16]
    home = (cache_dir or cache_folder()) / "home" / key
    if home.is_dir():
        return home
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{key}-", dir=home.parent) as scratch:
            made = Path(scratch) / key
            _make(made, home, toolkit, library)
            # Another process may have been faster, with the same content.
            if not home.is_dir():
                made.rename(home)
    except OSError as err:
        raise SetupError(
            f"{home}: cannot be made: {err.strerror}",
            help="set XDG_CACHE_HOME to a folder of yours",
        ) from err
    return home


def home_variables(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make `home` the toolkit of a shell with this environment."""
    lists = {
        "PATH": (home / "bin",),
        "LD_LIBRARY_PATH": (home / _LOADED, home / "lib64"),
        "CMAKE_PREFIX_PATH": (CMAKE_DIR,),
    }
    variables = {name: str(home) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")}
    variables["ASCEND_OPP_PATH"] = str(home / "opp")
    for name, folders in lists.items():
        before = [part for part in environment.get(name, "").split(os.pathsep) if part]
        ours = [str(folder) for folder in folders]
        rest = [part for part in before if part not in ours]
        variables[name] = os.pathsep.join([*ours, *rest])
    return variables


def _make(made: Path, home: Path, toolkit: Toolkit, library: Path) -> None:
    """Fill `made`, which will be renamed to `home`."""
    for name in ("bin", _LOADED, "lib64", "opp"):
        (made / name).mkdir(parents=True)
    (made / "include").symlink_to(toolkit.include_dir)
    (made / "lib64" / emulator.LIBRARY_NAME).symlink_to(library)
    write_program_start(
        made / "lib64" / _START_OBJECT, toolkit, find_compiler(), cache_dir=home.parents[1]
    )
    # A linker script each, so that a program gets the options of "opkit run" too.
    start = home / "lib64" / _START_OBJECT
    script = f'/* opkit */\nINPUT("{start}" "{library}")\n'
    for name in COVERED_LIBRARIES:
        (made / "lib64" / f"lib{name}.so").write_text(script, encoding="utf-8")
        (made / _LOADED / f"lib{name}.so").symlink_to(library)
    for name, command in _COMMANDS.items():
        launcher = made / "bin" / name
        launcher.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        launcher.chmod(0o755)
    for folder in _COMPILER_FOLDERS:
        (made / folder).mkdir(parents=True)
        (made / folder / "bin").symlink_to(home / "bin")
    (made / "set_env.sh").write_text(_SET_ENV.format(opkit=shlex.join(OPKIT_COMMAND)), "utf-8")
