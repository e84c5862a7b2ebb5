"""Compiler output as diagnostics against the user's own lines.

A mistake in a kernel often surfaces deep in our templates. The user did not write those: the
error is moved to the line of theirs that led there, and what the compiler says of our headers on
the way (instantiation chains, rejected candidates) is dropped.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from opkit.errors import Diagnostic, SetupError
from opkit.toolchain.source.spelling import spelling_hint

__all__ = ["parse_diagnostics"]

_LOCATED = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s+(?P<rest>.*)$")
_SEVERITY = re.compile(r"^(?:fatal )?(?P<severity>error|warning|note): (?P<message>.*)$")
_INCLUDED = re.compile(r"^(?:In file included|\s+) ?from (?P<file>[^:]+):(?P<line>\d+)")
_CONTEXT = re.compile(r"^(?P<file>[^\s:][^:]*): (?:In |At global scope)")
_COMMAND_LINE = re.compile(r"^(?P<tool>[^\s:]+): (?:fatal )?error: (?P<message>.*)$")
# The linker's own lines; "in function" only leads to the next one.
_LINKER = re.compile(
    r"^(?:\S*/)?ld(?:\.\w+)?: ?(?! |warning|NOTE|error: )(?P<message>.*[^:])$"
    r"|(?P<twice>multiple definition of [`'].+)$"
)
# What is left to say where the linker's own lines say no more.
_LINKER_FAILED = re.compile(r"^ld returned \d+ exit status$")
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`'\"]?(?P<symbol>.+?)['\"]?$")
_STATIC_ASSERT = re.compile(
    r"^static assertion failed(?: due to requirement '.*')?: \"?(?P<message>.*?)\"?$"
)
# gcc's and clang's words for "this line led there".
_TRAIL = re.compile(
    r"required from|required by|in expansion of macro|requested here|expanded from"
    r"|in instantiation of|in call to|in 'constexpr' expansion of|initializing parameter"
)
_NOT_VIABLE = re.compile(r"^candidate .* not viable: (.*)$")
# How our 16-bit floats (opkit/api/half.h) look to the compiler, and what the user wrote.
_FLOAT_16 = re.compile(
    r"(?:opkit::)?detail::Float16<(?:opkit::detail::)?(\w+)_bits, [\w:]+>(?: (?=>))?"
)
_FLOAT_16_NAMES = {"half": "half", "bfloat16": "bfloat16_t"}
_WARNING_FLAG = re.compile(r" \[-W[\w=+-]+\]$")


_Place = tuple[str, int, int]


@dataclass
class _Message:
    """One error or warning with the positions that led to it."""

    file: str
    line: int
    column: int
    severity: str
    message: str
    includes: list[_Place]
    """The include directives that lead to the file, the nearest first."""
    trail: list[_Place]
    """Positions on the way here (instantiations, macros), the nearest first."""
    notes: list[Diagnostic] = field(default_factory=list)


def parse_diagnostics(
    text: str, *, root: Path, foreign: Iterable[Path] = ()
) -> tuple[Diagnostic, ...]:
    """Return what gcc or clang and the linker printed, each message once.

    Args:
        text: the compiler's stderr, uncoloured, in English.
        root: the folder that it ran in: the user's files lie below it.
        foreign: folders of headers that are not the user's, such as the emulator's.
    """
    is_user = _user_file_test(root, tuple(foreign))
    found: dict[Diagnostic, None] = {}
    for message in _messages(text):
        for diagnostic in _resolved(message, root, is_user):
            found[diagnostic] = None
    for symbol in dict.fromkeys(_undefined_symbols(text)):
        found[Diagnostic(root, 0, 0, "error", f"{symbol} is declared but nowhere defined")] = None
    errors = [item for item in found if item.severity == "error"]
    if len(errors) > 1:
        for item in errors:
            if _LINKER_FAILED.match(item.message):
                del found[item]
    return tuple(found)


def _user_file_test(root: Path, foreign: tuple[Path, ...]) -> Callable[[str], bool]:
    @functools.cache
    def is_user(name: str) -> bool:
        # <built-in>, <command-line>, <scratch space>.
        if name.startswith("<"):
            return False
        path = _absolute(root, name)
        if any(path.is_relative_to(folder) for folder in foreign):
            return False
        return path.is_relative_to(root)

    return is_user


def _absolute(root: Path, name: str) -> Path:
    # Path drops a leading "./"; ".." is resolved as text, for links are the user's business.
    parts: list[str] = []
    for part in (root / name).parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)


def _messages(text: str) -> list[_Message]:
    messages: list[_Message] = []
    includes: list[_Place] = []
    ahead: list[_Place] = []
    previous_included = False
    for line in text.splitlines():
        included = _INCLUDED.match(line)
        if included:
            # gcc: one "In file", nearest first. clang: one "In file" a line, farthest first.
            place = (included["file"], int(included["line"]), 0)
            if not line.startswith("In file"):
                includes.append(place)
            elif previous_included:
                includes.insert(0, place)
            else:
                includes = [place]
            previous_included = True
            continue
        previous_included = False
        located = _LOCATED.match(line)
        if located is None:
            if _CONTEXT.match(line):
                ahead = [] if "instantiation" not in line else ahead
            elif _UNDEFINED.search(line):
                continue
            elif command := _COMMAND_LINE.match(line):
                messages.append(_Message("", 0, 0, "error", command["message"], [], []))
            elif linker := _LINKER.search(line):
                text_of = linker["message"] or linker["twice"]
                messages.append(_Message("", 0, 0, "error", text_of, [], []))
            continue
        place = (located["file"], int(located["line"]), int(located["column"] or 0))
        severity = _SEVERITY.match(located["rest"])
        if severity is None:
            if _TRAIL.search(located["rest"]):
                ahead.append(place)
            continue
        if severity["severity"] != "note":
            text_of = severity["message"]
            messages.append(_Message(*place, severity["severity"], text_of, includes, ahead))
            includes, ahead = [], []
        elif messages:
            if _TRAIL.search(severity["message"]):
                messages[-1].trail.append(place)
            else:
                name, number, column = place
                note = Diagnostic(Path(name), number, column, "note", severity["message"])
                messages[-1].notes.append(note)
    return messages


def _resolved(message: _Message, root: Path, is_user: Callable[[str], bool]) -> list[Diagnostic]:
    if not message.file:
        # gcc has no position for text that came from -D, such as the type in DTYPE_X; it has one
        # for where the macro is used.
        used = next((step for step in message.trail if is_user(step[0])), None)
        if used is not None:
            return [_diagnostic(root, used, message.severity, message.message)]
        return [Diagnostic(root, 0, 0, message.severity, message.message)]
    place = (message.file, message.line, message.column)
    if not is_user(message.file):
        # A warning that no line of the user's led to is about someone else's code.
        if message.severity == "warning" and not any(is_user(name) for name, _, _ in message.trail):
            return []
        steps = (*message.trail, *message.includes)
        place = next((step for step in steps if is_user(step[0])), place)
    result = [_diagnostic(root, place, message.severity, _plain(message.message))]
    for note in message.notes:
        if is_user(str(note.file)):
            step = (str(note.file), note.line, note.column)
            result.append(_diagnostic(root, step, "note", _plain(note.message.strip())))
    # clang says at the candidate why it was rejected; the user wants it at the call.
    reasons = [found[1] for note in message.notes if (found := _NOT_VIABLE.search(note.message))]
    if len(reasons) == 1:
        result.append(_diagnostic(root, place, "note", f"candidate {reasons[0]}"))
    return result


def _diagnostic(root: Path, place: _Place, severity: str, message: str) -> Diagnostic:
    file = _absolute(root, place[0])
    return Diagnostic(file, place[1], place[2], severity, message, _source_line(file, place[1]))


def _plain(message: str) -> str:
    message = _FLOAT_16.sub(lambda found: _FLOAT_16_NAMES.get(found[1], found[0]), message)
    asserted = _STATIC_ASSERT.match(message)
    if asserted:
        return asserted["message"]
    hint = spelling_hint(message)
    return _WARNING_FLAG.sub("", message) + (f"; {hint}" if hint else "")


def _undefined_symbols(text: str) -> list[str]:
    return [found["symbol"] for line in text.splitlines() if (found := _UNDEFINED.search(line))]


def _source_line(file: Path, line: int) -> str:
    return _lines(file)[line - 1] if 0 < line <= len(_lines(file)) else ""


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


# What compilers say when they themselves end: GCC, clang, and the driver of either; of a process
# that a signal has ended we say it.
_CRASHES = (
    "internal compiler error",
    "PLEASE submit a bug report",
    "signal terminated program",
    "unable to execute command",
    "killed by signal",
)


def compiler_crash(log: str) -> SetupError | None:
    """Return the error of a compiler that crashed or was killed; None where it did not."""
    lines = [line for line in log.splitlines() if any(words in line for words in _CRASHES)]
    if not lines:
        return None
    return SetupError(
        f"the compiler itself failed: {lines[0].strip()}",
        help="no fault of the source: if memory ran out compile fewer at a time (-j 1), else set"
        " CXX to another compiler",
    )
