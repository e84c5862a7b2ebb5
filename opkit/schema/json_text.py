"""A strict JSON reader that remembers the line of every value, so that errors can name it."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from opkit.errors import SpecError

__all__ = ["Json", "JsonDocument", "escape_pointer", "parse_json"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# A prototype nests five deep; the limit only keeps hostile input away from the interpreter's stack.
_MAX_DEPTH = 64
_MAX_NUMBER_LENGTH = 400

# Comments as JSON5 and C++ have them count as space: msopgen's users write them.
_SPACE = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^\s,:\[\]{}\"]+")
_NO_COMMENTS = (
    "comments are // ... and /* ... */: write it so, or take it out; YAML and TOML are files that"
    " end in .yaml and .toml"
)
_REMEDIES = {
    **dict.fromkeys(("/*", "#"), _NO_COMMENTS),
    **dict.fromkeys(("'", "\u201c", "\u201d"), 'write keys and texts between double quotes, "'),
    "\uff0c": "write an ASCII comma",
    "\uff1a": "write an ASCII colon",
    **dict.fromkeys(("T", "F"), "write true or false"),
    "N": "write null",
}
"""What to do about what stands where JSON has something else, by its first letters."""
_LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class JsonDocument:
    """A parsed text and the lines of its values."""

    value: Json
    lines: dict[str, int]
    """Line, from 1, of the value at each JSON pointer; a key's own is under `pointer + "#"`."""
    file: Path | None = None

    def error(
        self, message: str, pointer: str, *, help: str | None = None, key: bool = False
    ) -> SpecError:
        """Return an error at `pointer`, or at the key that `pointer` ends in."""
        line = self.lines.get(f"{pointer}#") if key else None
        where = pointer
        while line is None:
            # What stands on its owner's line, or was left out, has that.
            line = self.lines.get(where)
            if not where:
                break
            where = where.rpartition("/")[0]
        return SpecError(message, file=self.file, pointer=pointer, line=line, help=help)


def escape_pointer(key: str) -> str:
    """Return `key` as one JSON pointer step (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def parse_json(text: str, *, file: Path | None = None) -> JsonDocument:
    """Return the value and the line of each of its parts.

    Stricter than the standard library: no NaN or Infinity, no repeated keys, no overflow. Comments,
    `// ...` and `/* ... */`, are taken, and a comma after the last entry.

    Raises:
        SpecError: the text is not JSON; line and JSON pointer say where.
    """
    return _Reader(text, file).document()


class _Reader:
    def __init__(self, text: str, file: Path | None) -> None:
        self._text = text
        self._file = file
        self._position = 0
        self._lines: dict[str, int] = {}
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> JsonDocument:
        value = self._value("", 0)
        self._skip_space()
        if self._position < len(self._text):
            raise self._unexpected("nothing after the end of the value", "")
        return JsonDocument(value, self._lines, self._file)

    def _value(self, pointer: str, depth: int) -> Json:
        self._skip_space()
        self._lines[pointer] = self._line()
        if depth > _MAX_DEPTH:
            raise self._error(f"nested deeper than {_MAX_DEPTH} levels", pointer)
        start = self._text[self._position : self._position + 1]
        if start == "{":
            return self._object(pointer, depth)
        if start == "[":
            return self._array(pointer, depth)
        if start == '"':
            return self._string(pointer)
        return self._scalar(pointer)

    def _object(self, pointer: str, depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for _ in self._entries("}", pointer):
            if not self._text.startswith('"', self._position):
                raise self._unexpected("a key in double quotes", pointer)
            key_line = self._line()
            key = self._string(pointer)
            here = f"{pointer}/{escape_pointer(key)}"
            if key in result:
                raise SpecError(
                    f'the key "{key}" appears twice',
                    file=self._file,
                    pointer=here,
                    line=key_line,
                    help=f"keep one; the first is on line {self._lines[f'{here}#']}",
                )
            self._lines[f"{here}#"] = key_line
            self._skip_space()
            if not self._text.startswith(":", self._position):
                raise self._unexpected(f'":" after "{key}"', here)
            self._position += 1
            result[key] = self._value(here, depth + 1)
        return result

    def _array(self, pointer: str, depth: int) -> list[Json]:
        return [
            self._value(f"{pointer}/{index}", depth + 1) for index in self._entries("]", pointer)
        ]

    def _entries(self, end: str, pointer: str) -> Iterator[int]:
        """Yield at the start of each entry of an object or array; consume its punctuation."""
        opened = self._line()
        self._position += 1
        index = 0
        while True:
            self._skip_space()
            if self._position >= len(self._text):
                raise self._error(
                    f'the text ends before the "{end}" that closes line {opened}',
                    pointer,
                    help="the file looks cut off",
                )
            # A comma may follow the last entry, as JSON5 and Python have it.
            if self._text[self._position] == end:
                self._position += 1
                return
            yield index
            index += 1
            self._skip_space()
            if self._text.startswith(",", self._position):
                self._position += 1
                continue
            if self._text.startswith(end, self._position):
                self._position += 1
                return
            if self._position >= len(self._text):
                continue
            raise self._unexpected(f'"," or "{end}"', pointer)

    def _string(self, pointer: str) -> str:
        match = _STRING.match(self._text, self._position)
        if match is None:
            raise self._error("a string is not closed on its line", pointer)
        try:
            value = json.loads(match.group())
        except ValueError as err:
            raise self._error(f"a string has a bad escape: {match.group()}", pointer) from err
        self._position = match.end()
        return str(value)

    def _scalar(self, pointer: str) -> Json:
        match = _NUMBER.match(self._text, self._position)
        word = _WORD.match(self._text, self._position)
        if match is None or word is None or match.end() != word.end():
            if word is None or word.group() not in _LITERALS:
                raise self._unexpected("a value", pointer)
            self._position = word.end()
            return _LITERALS[word.group()]
        text = match.group()
        if len(text) > _MAX_NUMBER_LENGTH:
            raise self._error(f"a number of {len(text)} characters is too long", pointer)
        is_float = bool(match["fraction"] or match["exponent"])
        number = float(text) if is_float else int(text)
        if number in (float("inf"), float("-inf")):
            raise self._error(f"{text} does not fit a double", pointer)
        self._position = match.end()
        return number

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._position)
        self._position = match.end() if match else self._position

    def _line(self) -> int:
        return bisect.bisect_left(self._newlines, self._position) + 1

    def _found(self) -> str:
        word = _WORD.match(self._text, self._position)
        if word:
            return f'"{word.group()[:40]}"'
        if self._position >= len(self._text):
            return "the end of the text"
        return f'"{self._text[self._position]}"'

    def _unexpected(self, wanted: str, pointer: str) -> SpecError:
        """Return the error for something else than what the place takes, with its remedy."""
        rest = self._text[self._position : self._position + 2]
        help = _REMEDIES.get(rest, _REMEDIES.get(rest[:1]))
        message = f"expected {wanted}, found {self._found()}"
        if help is _NO_COMMENTS:
            message += ", a comment"
        return self._error(message, pointer, help=help or "docs/operators.md shows a prototype")

    def _error(self, message: str, pointer: str, *, help: str | None = None) -> SpecError:
        return SpecError(message, file=self._file, pointer=pointer, line=self._line(), help=help)
