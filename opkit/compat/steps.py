"""Carrying out the steps of a recipe in a scratch copy, each with a time limit."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opkit.compat.processes import Ran, Running
from opkit.compat.recipe import Step
from opkit.compat.shell import assignment_of, expand

__all__ = ["Workplace"]

# For FindPython3 and FindPython, which else take the newest of the machine.
_THIS_PYTHON = (
    f"-DPython3_EXECUTABLE={sys.executable}",
    f"-DPython_EXECUTABLE={sys.executable}",
    "--no-warn-unused-cli",
)


@dataclass
class Workplace:
    """A scratch copy of a sample, and where a script stands in it."""

    root: Path
    """Nothing is written outside it."""
    running: Running
    seconds: float
    """The limit of one step."""
    cmake_arguments: tuple[str, ...]
    """What makes CMake find the language ASC."""
    environment: Mapping[str, str]
    """Variables of every step, over those of this process."""
    show: Callable[[Sequence[str]], None]
    """Called with each command before it runs."""
    here: Path = field(init=False)
    """The working directory."""
    variables: dict[str, str] = field(init=False)
    """The environment with the variables that the script has set."""

    def __post_init__(self) -> None:
        self.here = self.root
        self.variables = {**os.environ, **self.environment}
        # CMake starts opkit from other folders than this one.
        ours = str(Path(__file__).parents[2])
        paths = [ours, self.variables.get("PYTHONPATH", "")]
        self.variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        folders = [str(Path(sys.executable).parent), self.variables.get("PATH", "")]
        self.variables["PATH"] = os.pathsep.join(folder for folder in folders if folder)
        # English messages: they are parsed.
        self.variables["LC_ALL"] = "C.UTF-8"
        self.variables["PYTHONIOENCODING"] = "utf-8"

    def do(self, step: Step) -> Ran:
        """Carry out one step."""
        words = self._expanded(step)
        if step.kind == "set":
            pairs = [assignment_of(word) for word in step.words]
            for name, value in (pair for pair in pairs if pair is not None):
                self.variables[name] = expand(value, self.variables)
            return Ran(0, "")
        if step.kind in ("folder", "enter", "remove"):
            return self._in_folders(step.kind, words)
        argv = self._argv(step.kind, words)
        self.show(argv)
        return self.running.call(argv, cwd=self.here, env=self.variables, seconds=self.seconds)

    def inside(self, name: str) -> Path | None:
        """Return the path that a word leads to; None where it leaves the scratch copy."""
        path = Path(os.path.normpath(self.here / name))
        return path if path.is_relative_to(self.root) else None

    def _expanded(self, step: Step) -> list[str]:
        words: list[str] = []
        for word in step.words:
            text = expand(word, self.variables)
            words += self._matches(text) if "*" in text else [text]
        return words

    def _matches(self, pattern: str) -> list[str]:
        """Return the files that a pattern stands for; as in a shell, itself where none does."""
        try:
            found = sorted(self.here.glob(pattern.removeprefix("./")))
        except (ValueError, NotImplementedError):
            return [pattern]
        return [f"./{path.relative_to(self.here)}" for path in found] or [pattern]

    def _in_folders(self, kind: str, words: Sequence[str]) -> Ran:
        for word in words:
            path = self.inside(word)
            if path is None:
                return Ran(1, "", failed_to_start=f"{kind} {word} leads out of the sample")
            if kind == "folder":
                path.mkdir(parents=True, exist_ok=True)
            elif kind == "enter":
                if not path.is_dir():
                    return Ran(1, f"cd: {word}: no such folder")
                self.here = path
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return Ran(0, "")

    def _argv(self, kind: str, words: list[str]) -> list[str]:
        program, *rest = words
        if kind == "configure":
            return [_cmake(), *rest, *self.cmake_arguments, *_THIS_PYTHON]
        if kind == "build":
            # One job: samples are built side by side already.
            plain = [word for word in rest if not _is_jobs(word)]
            return [_cmake() if program == "cmake" else program, *plain]
        if program.startswith("python"):
            return [sys.executable, *rest]
        return words


def _is_jobs(word: str) -> bool:
    return word.startswith("-j") and word[2:].strip("=").isdigit() | (word == "-j")


def _cmake() -> str:
    # The one beside this Python first: opkit may have come with it.
    beside = Path(sys.executable).parent / "cmake"
    return str(beside) if beside.is_file() else "cmake"
