"""What a kernel's source calls the tensors that its instructions work on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from opkit.compiler import generated_source
from opkit.toolchain import Token, TokenKind, matching_close, significant, tokenize

__all__ = ["SourceFile", "source_file"]

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
# How many lines the arguments of one call are looked for on.
_MOST_LINES = 20
# The copies are one function in the language and several instructions here.
_CALLED = {"DataCopyNd2Nz": "DataCopy", "DataCopyNz2Nd": "DataCopy", "InitOutput": "InitOutput"}


class SourceFile:
    """One source: its lines, and the names in its calls."""

    def __init__(self, path: Path) -> None:
        text = _text_of(path)
        self.path = path
        self.text = text
        self.lines: Sequence[str] = text.splitlines()
        self._offsets = [0]
        for line in text.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))

    def line(self, number: int) -> str:
        """Return a line without its indentation; empty where there is none."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def operand_names(self, line: int, op: str) -> tuple[str, ...]:
        """Return the first arguments of the call at a line, such as `("z", "x[64]", "y")`.

        None where the line calls something else, which made the instruction in turn.
        """
        wanted = _CALLED.get(op, op)
        tokens = self._tokens(line)
        for index, token in enumerate(tokens):
            if token.kind is not TokenKind.IDENTIFIER or token.text != wanted:
                continue
            opening = _opening(tokens, index)
            if opening is None:
                continue
            return tuple(_arguments(tokens, opening, self.text))
        return ()

    def element_name(self, line: int) -> str:
        """Return the tensor whose GetValue or SetValue is called at a line; empty without one."""
        found = re.search(r"([A-Za-z_]\w*)\s*\.\s*(?:GetValue|SetValue)\b", self.line(line))
        return found[1] if found else ""

    def queue_call(self, line: int) -> tuple[str, str, str]:
        """Return (queue, call, tensor) of an AllocTensor, DeQue, EnQue or FreeTensor at a line."""
        text = self.line(line)
        found = re.search(
            r"([A-Za-z_]\w*)\s*(?:\.|->)\s*(?:template\s+)?"
            r"(AllocTensor|DeQue|EnQue|FreeTensor)\b(?:\s*<[^()]*>)?\s*\(\s*([A-Za-z_]\w*)?",
            text,
        )
        if found is None:
            return "", "", ""
        if found[3]:
            return found[1], found[2], found[3]
        assigned = re.search(r"([A-Za-z_]\w*)\s*=\s*[^=]", text[: found.start()] + "= x")
        return found[1], found[2], assigned[1] if assigned else ""

    def buffer_name(self, line: int) -> str:
        """Return the queue or buffer that InitBuffer at a line is for; empty without one."""
        found = re.search(r"\bInitBuffer\s*\(\s*([^,()]+)", self.line(line))
        names = _IDENTIFIER.findall(found[1]) if found else []
        return names[-1] if names else ""

    def statement(self, line: int) -> str:
        """Return the call at a line on one line, up to its semicolon."""
        text = " ".join(token.text for token in self._tokens(line))
        return text.partition(" ;")[0]

    def _tokens(self, line: int) -> list[Token]:
        if not 0 < line <= len(self.lines):
            return []
        start = self._offsets[line - 1]
        end = self._offsets[min(line - 1 + _MOST_LINES, len(self.lines))]
        return [
            Token(token.kind, token.text, token.start + start)
            for token in significant(tokenize(self.text[start:end]))
        ]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # What the compiler of tensor programs has made is no file.
        return _own_lines(generated_source(path.name) or "", path.name)


def _own_lines(text: str, name: str) -> str:
    """Return the lines of a generated text that are its own, by the numbers that #line gives."""
    lines: dict[int, str] = {}
    is_own, number = True, 1
    for line in text.splitlines():
        told = re.match(r'#line (\d+) "(.*)"', line)
        if told is not None:
            is_own, number = told[2] == name, int(told[1])
            continue
        if is_own:
            lines[number] = line
        number += 1
    return "".join(f"{lines.get(n, '')}\n" for n in range(1, max(lines, default=0) + 1))


@cache
def source_file(path: Path) -> SourceFile:
    """Return a source, read once."""
    return SourceFile(path)


def _opening(tokens: Sequence[Token], index: int) -> int | None:
    """Return the parenthesis behind a name and its template arguments."""
    at = index + 1
    if at < len(tokens) and tokens[at].text == "<":
        depth = 0
        for inside in range(at, min(at + 64, len(tokens))):
            depth += {"<": 1, ">": -1}.get(tokens[inside].text, 0)
            at = inside + 1
            if depth == 0:
                break
    return at if at < len(tokens) and tokens[at].text == "(" else None


def _arguments(tokens: Sequence[Token], opening: int, text: str) -> list[str]:
    closing = matching_close(tokens, opening)
    if closing is None:
        return []
    found = []
    first = opening + 1
    index = first
    while index < closing:
        word = tokens[index].text
        if word in ("(", "[", "{"):
            index = matching_close(tokens, index) or closing
        elif word == ",":
            found.append(text[tokens[first].start : tokens[index - 1].end])
            first = index + 1
        index += 1
    if first < closing:
        found.append(text[tokens[first].start : tokens[closing - 1].end])
    return found
