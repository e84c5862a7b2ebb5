"""Tuning a program: constants and tiling fields of its source, named on the command line."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opkit
from opkit.chips import Chip, find_chip
from opkit.compat import says_fail, says_pass
from opkit.errors import OpkitError, UsageError
from opkit.executor import Work, folder_of
from opkit.tuning.measurement import Measurement, measure
from opkit.tuning.session import Subject
from opkit.tuning.space import Candidate, Knob, Space, Value

__all__ = ["SourceKnob", "program_subject", "read_source_knob"]

_NOT_COPIED = (".git", "__pycache__", "opkit.tune")
_SUFFIXES = {".asc", ".cpp", ".cc", ".h", ".hpp", ".inc"}


@dataclass(frozen=True)
class SourceKnob:
    """A number in a source, and the values to try in its place."""

    file: Path
    """Relative to the folder that is copied."""
    name: str
    is_field: bool
    """Assigned to a member of the tiling data; else a constexpr or a macro."""
    start: str
    """What the source says."""
    values: tuple[str, ...]

    @property
    def knob(self) -> Knob:
        """The knob, with the start among its values."""
        values: tuple[Value, ...] = tuple(dict.fromkeys((self.start, *self.values)))
        return Knob(self.name, values, self.start, f"in {self.file}")


def read_source_knob(text: str, root: Path, *, is_field: bool) -> SourceKnob:
    """Return what `add.asc:TILE=1024,2048` names; without a file, the one that has the name.

    Raises:
        UsageError: it is not written so, or the name stands nowhere, or in several places.
    """
    option = "--field" if is_field else "--constexpr"
    match = re.fullmatch(r"(?:(?P<file>[^=]+):)?(?P<name>[A-Za-z_]\w*)=(?P<values>[^=]+)", text)
    values = tuple(part.strip() for part in match["values"].split(",")) if match else ()
    if match is None or not all(values):
        raise UsageError(
            f'{option} "{text}" cannot be read', help=f"write {option} add.asc:TILE=1024,2048"
        )
    name = match["name"]
    if match["file"]:
        files = [root / match["file"]]
        if not files[0].is_file():
            raise UsageError(f"{option} {text}: {match['file']} is no file")
    else:
        files = sorted(path for path in _sources(root) if path.suffix in _SUFFIXES)
    found = [
        (path, place.group("value").strip())
        for path in files
        for place in _pattern(name, is_field).finditer(path.read_text("utf-8", "replace"))
    ]
    what = "assignment to a field" if is_field else "constexpr or #define"
    if not found:
        where = match["file"] or f"the sources in {root}"
        raise UsageError(f"{option} {text}: {where} has no {what} named {name}")
    if len(found) > 1:
        places = ", ".join(str(path.relative_to(root)) for path, _ in found[:4])
        raise UsageError(
            f"{option} {text}: {name} is set in {len(found)} places: {places}",
            help=f"name the file: {option} FILE:{name}=..., or let one place say it",
        )
    path, start = found[0]
    return SourceKnob(path.relative_to(root), name, is_field, start, values)


def _pattern(name: str, is_field: bool) -> re.Pattern[str]:
    """Return what finds where a name gets its value; the value is the group `value`."""
    if is_field:
        ways = rf"(?:(?:\.|->){name}\s*=(?!=)\s*|\bset_{name}\s*\(\s*)"
        return re.compile(ways + r"(?P<value>[^;,(){}]+?)\s*(?=[;,)}])")
    ways = (
        rf"(?:\bconstexpr\b[^;={{}}()]*\b{name}\s*[={{]\s*"
        rf"|^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+)"
    )
    return re.compile(ways + r"(?P<value>[^;}\n]+?)\s*(?=[;}\n]|//)", re.MULTILINE)


def _sources(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (*_NOT_COPIED, "build")]
        yield from (Path(folder, name) for name in names)


@dataclass(frozen=True)
class _Setup:
    knobs: tuple[SourceKnob, ...]
    program: str
    arguments: tuple[str, ...]
    build: tuple[str, ...]
    verify: tuple[str, ...]
    chip: str
    seconds: float


def program_subject(
    program: Sequence[str],
    knobs: Sequence[SourceKnob],
    *,
    root: Path,
    build: str | None,
    verify: str | None,
    chip: Chip | str,
    seconds: float = 60.0,
) -> Subject:
    """Return a program as something to tune: each candidate is built and run in a copy of `root`.

    Args:
        program: its path in `root`, and its arguments.
        build: makes it, in `root`; `opkit cc` of the one source when None.
        verify: ends with 0 where the program's results are right; when None, the program says it.
        seconds: the limit of building and of each run.
    Raises:
        UsageError: nothing may change, or it is not said how the program is built.
    """
    target = find_chip(chip) if isinstance(chip, str) else chip
    if not knobs:
        raise UsageError(
            "nothing says what may change in the program",
            help="name it: --constexpr FILE:NAME=1,2,4 or --field FILE:NAME=1,2,4",
        )
    path = Path(program[0])
    place = (path if path.is_absolute() else root / path).resolve()
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f"{path} lies outside of {root}", help="run opkit tune in the folder that holds both"
        )
    command = shlex.split(build) if build else _own_build(knobs, place.relative_to(root.resolve()))
    names = [knob.name for knob in knobs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice", help="give all its values at once")
    folder = folder_of(root, left_out=_NOT_COPIED)
    setup = _Setup(
        tuple(knobs),
        str(place.relative_to(root.resolve())),
        tuple(program[1:]),
        tuple(command),
        tuple(shlex.split(verify)) if verify else (),
        target.name,
        seconds,
    )
    digest = hashlib.sha256(f"{opkit.__version__} {setup}".encode())
    for source in sorted(_sources(root)):
        if source.suffix in _SUFFIXES or source.name == "CMakeLists.txt":
            digest.update(source.read_bytes())
    return Subject(
        name=" ".join(program),
        chip=target.name,
        space=Space(tuple(knob.knob for knob in knobs)),
        work=Work(_begin, setup, {"source": folder}, seconds=5 * seconds, answers=Measurement),
        identity=digest.hexdigest()[:16],
    )


def _own_build(knobs: Sequence[SourceKnob], program: Path) -> list[str]:
    files = sorted({str(knob.file) for knob in knobs})
    if len(files) > 1 or not files[0].endswith((".asc", ".cpp", ".cc")):
        raise UsageError(
            f"how {program} is made of {', '.join(files)} is not said",
            help=f'say it: --build "opkit cc main.asc -o {program}"',
        )
    return ["opkit", "cc", files[0], "-o", str(program)]


def _begin(setup: _Setup, folders: Mapping[str, Path]) -> Callable[[Any], Measurement]:
    def run(case: tuple[str, Candidate]) -> Measurement:
        kind, candidate = case
        with tempfile.TemporaryDirectory(prefix="opkit-tune-") as scratch:
            root = Path(scratch).resolve() / folders["source"].name
            shutil.copytree(folders["source"], root, ignore=shutil.ignore_patterns(*_NOT_COPIED))
            for knob, value in zip(setup.knobs, candidate, strict=True):
                _change(root / knob.file, knob, str(value))
            wrong = _made(setup, root)
            if wrong:
                return Measurement(0.0, wrong=wrong)
            with _inside(root):
                return _checked(setup, root) if kind == "check" else _timed(setup, root)

    return run


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Let programs that are started print nowhere: each prints the same, a hundred times over."""
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        for number, copy in enumerate(kept, 1):
            os.dup2(copy, number)
            os.close(copy)


def _change(file: Path, knob: SourceKnob, value: str) -> None:
    if value == knob.start:
        return
    text = file.read_text("utf-8", "surrogateescape")
    place = _pattern(knob.name, knob.is_field).search(text)
    assert place is not None
    start, end = place.span("value")
    file.write_text(text[:start] + value + text[end:], "utf-8", "surrogateescape")


def _made(setup: _Setup, root: Path) -> str:
    """Build, and return why that failed; empty where it did not."""
    from opkit.toolchain import OPKIT_COMMAND

    words = list(setup.build)
    if words[0] == "opkit":
        words[:1] = OPKIT_COMMAND
    code, output = _call(words, root, setup.seconds)
    if code == 0:
        return ""
    last = output.strip().splitlines()[-1:] or [f"exit code {code}"]
    return f"does not build: {last[0]}"


def _call(words: Sequence[str], root: Path, seconds: float) -> tuple[int, str]:
    try:
        done = subprocess.run(
            list(words),
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds or None,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"{words[0]} takes more than {seconds:g} s"
    except OSError as err:
        return 127, f"{words[0]}: {err.strerror}"
    return done.returncode, done.stdout.decode(errors="replace")


def _timed(setup: _Setup, root: Path) -> Measurement:
    from opkit.profiling import profile_program

    code, output = _call([f"./{setup.program}", *setup.arguments], root, setup.seconds)
    wrong = _wrong(setup, root, code, output)
    if wrong:
        return Measurement(0.0, wrong=wrong)
    try:
        with _silent():
            timelines, _ = profile_program(
                root / setup.program, list(setup.arguments), chip=setup.chip, event_limit=0
            )
    except OpkitError as error:
        if error.exit_code == OpkitError.exit_code:
            raise
        return Measurement(0.0, wrong=str(error).splitlines()[0])
    return measure(timelines, wrong="" if timelines else "it launches no kernel")


def _wrong(setup: _Setup, root: Path, code: int, output: str) -> str:
    """Return why a run's results are wrong, or that nothing says so; empty where they are right."""
    if code != 0:
        last = output.strip().splitlines()[-1:] or [""]
        return f"ends with code {code}: {last[0]}"
    if setup.verify:
        code, output = _call(setup.verify, root, setup.seconds)
        if code != 0 or says_fail(output):
            last = output.strip().splitlines()[-1:] or [f"exit code {code}"]
            return f"--verify: {last[0]}"
        return ""
    failed = says_fail(output)
    if failed:
        return f"the program says: {failed}"
    if says_pass(output) is None:
        return (
            "nothing says whether its results are right: let the program say pass or fail, or give"
            " --verify COMMAND"
        )
    return ""


def _checked(setup: _Setup, root: Path) -> Measurement:
    from opkit.sanitizer import TOOLS, CheckSettings, check_program

    with _silent():
        report = check_program(
            root / setup.program, setup.arguments, settings=CheckSettings(TOOLS), chip=setup.chip
        )
    gaps = [gap.message for gap in report.gaps]
    found = dict.fromkeys(finding.id for finding in report.findings)
    return Measurement(0.0, wrong=gaps[0] if gaps else "", findings=tuple(found))
