"""A project as a wheel, by its own build backend."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from opkit.errors import BuildError, SetupError
from opkit.toolchain.projects.project import Project

__all__ = ["build_wheel"]


def build_wheel(
    project: Project,
    *,
    out: Path | None = None,
    verbose: Callable[[list[str]], None] | None = None,
) -> Path:
    """Build a project's wheel and return it; `dist/` in the project when `out` is None.

    Raises:
        SetupError: pip or the build backend is not installed.
        BuildError: the build failed; carries its log.
    """
    for module in ("pip", "scikit_build_core"):
        if importlib.util.find_spec(module) is None:
            name = module.replace("_", "-")
            raise SetupError(
                f"{name} is not installed: it builds the wheel",
                help="python -m ensurepip" if name == "pip" else f"python -m pip install {name}",
            )
    folder = out or project.root / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".wheel-") as aside:
        argv = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
        argv += ["--disable-pip-version-check", "--wheel-dir", aside, str(project.root)]
        if verbose is not None:
            verbose(argv)
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        wheels = sorted(Path(aside).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise BuildError(
                f"pip could not build a wheel of {project.name}:\n{_tail(done.stdout)}",
                log=done.stdout,
                help='"opkit build" shows compiler errors by file and line',
            )
        target = folder / wheels[0].name
        shutil.move(wheels[0], target)
    return target


def _tail(log: str) -> str:
    return "\n".join(f"    {line}" for line in log.rstrip().splitlines()[-12:])
