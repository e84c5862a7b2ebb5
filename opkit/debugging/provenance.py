"""Where in the source an operand's address and a copy's length come from.

A wrapper's own line says little: `DataCopyPad(local, source, copy)` in a function that copies all
tensors. This follows names outwards: from an argument to the parameter of the function around it,
to the calls of that function, to the variable, to its definition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opkit.debugging.source_names import source_file
from opkit.toolchain import Token, TokenKind, matching_close, significant, tokenize

__all__ = ["Origin", "Trail", "definition_line", "length_line", "origins"]

_NO_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "constexpr"}
_MOST_HOPS = 6


@dataclass(frozen=True)
class Origin:
    """One place that an address comes through, from the instruction outwards."""

    line: int
    text: str
    """The expression there."""
    kind: str
    """`argument`, `definition` or `buffer`: what SetGlobalBuffer or InitBuffer was given."""

    @property
    def has_offset(self) -> bool:
        """Whether it adds an offset to a tensor."""
        return "[" in self.text


@dataclass(frozen=True)
class _Function:
    name: str
    parameters: tuple[str, ...]
    first: int
    """Index of the token behind the opening brace."""
    last: int
    """Index of the closing one."""


class _Code:
    """One source as tokens with lines and functions."""

    def __init__(self, path: Path) -> None:
        self.text = source_file(path).text
        self.tokens = significant(tokenize(self.text))
        self.lines = []
        line, at = 1, 0
        for token in self.tokens:
            line += self.text.count("\n", at, token.start)
            at = token.start
            self.lines.append(line)
        self.functions = tuple(self._find_functions())

    def _find_functions(self) -> list[_Function]:
        found = []
        for index, token in enumerate(self.tokens):
            if token.kind is not TokenKind.IDENTIFIER or token.text in _NO_FUNCTIONS:
                continue
            if self._text(index + 1) != "(":
                continue
            closing = matching_close(self.tokens, index + 1)
            if closing is None:
                continue
            at = closing + 1
            while self._text(at) in ("const", "noexcept", "override", "final"):
                at += 1
            if self._text(at) != "{":
                continue
            end = matching_close(self.tokens, at)
            if end is None:
                continue
            parameters = tuple(_last_name(part) for part in self._arguments(index + 1, closing))
            found.append(_Function(token.text, parameters, at + 1, end))
        return found

    def _text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def _arguments(self, opening: int, closing: int) -> list[str]:
        return _split(self.tokens, opening, closing, self.text)

    def _between(self, first: int, last: int) -> str:
        return (
            self.text[self.tokens[first].start : self.tokens[last - 1].end] if first < last else ""
        )

    def function_at(self, line: int) -> _Function | None:
        """Return the innermost function around a line."""
        around = [
            f for f in self.functions if self.lines[f.first - 1] <= line <= self.lines[f.last]
        ]
        return max(around, key=lambda f: f.first, default=None)

    def calls(self, name: str) -> list[tuple[int, list[str]]]:
        """Return (line, arguments) of each call of a function."""
        found = []
        definitions = {f.first for f in self.functions if f.name == name}
        for index, token in enumerate(self.tokens):
            if token.kind is not TokenKind.IDENTIFIER or token.text != name:
                continue
            opening = _opening(self.tokens, index)
            closing = None if opening is None else matching_close(self.tokens, opening)
            if opening is None or closing is None:
                continue
            if any(closing < first <= closing + 4 for first in definitions):
                continue
            found.append((self.lines[index], self._arguments(opening, closing)))
        return found

    def passed_through(self, text: str) -> str:
        """Return the argument of a call that the called function may hand back; empty where the
        text is no such call."""
        found = re.match(r"^\s*([A-Za-z_]\w*)\s*\((.*)\)\s*$", text, re.DOTALL)
        function = next((f for f in self.functions if found and f.name == found[1]), None)
        if found is None or function is None:
            return ""
        body = range(function.first, function.last - 2)
        returned = [
            self._text(i + 1)
            for i in body
            if self._text(i) == "return" and self._text(i + 2) == ";"
        ]
        tokens = significant(tokenize(text))
        opening = _opening(tokens, 0)
        closing = None if opening is None else matching_close(tokens, opening)
        if opening is None or closing is None:
            return ""
        arguments = _split(tokens, opening, closing, text)
        for name in returned:
            if name in function.parameters:
                place = function.parameters.index(name)
                return arguments[place] if place < len(arguments) else ""
        return ""

    def arguments_at(self, line: int, op: str) -> list[str]:
        """Return the arguments of a call at a line; none where there is no such call."""
        for index, token in enumerate(self.tokens):
            if self.lines[index] == line and token.text == op:
                opening = _opening(self.tokens, index)
                closing = None if opening is None else matching_close(self.tokens, opening)
                if opening is not None and closing is not None:
                    return self._arguments(opening, closing)
        return []

    def definition(self, name: str, line: int) -> tuple[int, str] | None:
        """Return (line, value) of what a name was given last before a line: in its function, or
        anywhere where it is a member."""
        function = self.function_at(line)
        spans = [] if function is None else [(function.first, function.last)]
        for first, last in (*spans, (0, len(self.tokens))):
            found = None
            for index in range(first, last):
                if self.tokens[index].text != name:
                    continue
                is_inside = spans and (first, last) == spans[0]
                if is_inside and self.lines[index] > line:
                    break
                value = self._given(index)
                if value is not None:
                    found = (self.lines[index], value)
            if found is not None:
                return found
        return None

    def _given(self, index: int) -> str | None:
        """Return what a name is given where it is declared or assigned; None elsewhere."""
        following = self._text(index + 1)
        before = self._text(index - 1)
        is_type = index > 0 and (
            self.tokens[index - 1].kind is TokenKind.IDENTIFIER and before not in ("return", "else")
        )
        is_declared = is_type or before in (">", "&", "*")
        if following == "=" and self._text(index + 2) != "=":
            end = index + 2
            while end < len(self.tokens) and self._text(end) != ";":
                end = (
                    (matching_close(self.tokens, end) or end) + 1
                    if self._text(end) in "([{"
                    else end + 1
                )
            return self._between(index + 2, end)
        if following in ("(", "{") and is_declared:
            closing = matching_close(self.tokens, index + 1)
            if closing is not None and self._text(closing + 1) in (";", ","):
                return self._between(index + 2, closing)
        if following == "." and self._text(index + 2) == "SetGlobalBuffer":
            closing = matching_close(self.tokens, index + 3)
            return (
                None if closing is None else "SetGlobalBuffer " + self._between(index + 4, closing)
            )
        if following == "." and self._text(index + 3) == "=":
            return self._between(index + 4, index + 5)
        return None


@cache
def _code(path: Path) -> _Code:
    return _Code(path)


@dataclass(frozen=True)
class Trail:
    """What a launch tells of the way to an instruction."""

    buffers: Sequence[str] = ()
    """Names that calls of a function around it pass where they are meant: queues."""
    executed: frozenset[int] = frozenset()
    """Lines of the source that instructions came from."""
    instructions: frozenset[str] = frozenset()
    """Names of all instructions."""
    has_offset: bool = False
    """Whether the address is not the start of its tensor: something has added to it."""


def origins(path: Path, line: int, text: str, trail: Trail | None = None) -> list[Origin]:
    """Return where an operand's address comes through, from the call at `line` outwards.

    Args:
        text: the argument of the call.
        trail: tells apart the calls that a function around it has.
    """
    code = _code(path)
    trail = trail or Trail()
    found = [Origin(line, text, "argument")]
    for _ in range(_MOST_HOPS):
        here = found[-1]
        passed = code.passed_through(here.text)
        if passed:
            found.append(Origin(here.line, passed, "argument"))
            continue
        base = _base_name(here.text)
        if not base:
            break
        function = code.function_at(here.line)
        step = None
        if function is not None and base in function.parameters:
            step = _outwards(code, function, function.parameters.index(base), trail)
        if step is None:
            given = code.definition(base, here.line)
            if given is None or (given[0] == here.line and given[1] == here.text):
                break
            is_buffer = given[1].startswith("SetGlobalBuffer ")
            value = given[1].removeprefix("SetGlobalBuffer ")
            step = Origin(given[0], value, "buffer" if is_buffer else "definition")
        found.append(step)
        if step.kind == "buffer":
            break
    return found


def _outwards(code: _Code, function: _Function, place: int, trail: Trail) -> Origin | None:
    calls = [(line, args) for line, args in code.calls(function.name) if len(args) > place]
    passing = [
        (line, args)
        for line, args in calls
        if any(re.search(rf"\b{re.escape(n)}\b", arg) for n in trail.buffers for arg in args)
    ]
    calls = passing or calls
    run = [(line, args) for line, args in calls if _may_have_run(code, line, trail)]
    calls = run or calls
    if trail.has_offset:
        calls = [(line, args) for line, args in calls if "[" in args[place]] or calls
    bases = {_base_name(args[place]) for _, args in calls}
    if not calls or len(bases) != 1:
        return None
    line, args = calls[0]
    # Of several calls with one tensor only the tensor is known.
    return Origin(line, args[place] if len(calls) == 1 else bases.pop(), "argument")


def _may_have_run(code: _Code, line: int, trail: Trail) -> bool:
    """Whether the function around a line has run: not so where it issues instructions itself, and
    the launch has none of them."""
    function = code.function_at(line)
    if function is None:
        return True
    inside = range(function.first, function.last)
    issues = {code.lines[i] for i in inside if code.tokens[i].text in trail.instructions}
    return not issues or bool(issues & trail.executed)


def length_line(path: Path, line: int, op: str, operands: int) -> int:
    """Return where the length of a copy or calculation at a line is decided: the line itself, or
    the definition of the variable that it is passed in."""
    code = _code(path)
    for argument in code.arguments_at(line, op)[operands:]:
        name = argument.strip()
        function = code.function_at(line)
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or function is None:
            continue
        if name in function.parameters:
            continue
        given = code.definition(name, line)
        inside = given is not None and (
            code.lines[function.first - 1] <= given[0] <= code.lines[function.last]
        )
        if given is not None and inside and given[1].strip():
            return given[0]
    return line


def definition_line(path: Path, line: int, text: str) -> int:
    """Return where the first name of an expression is given its value; 0 where none is."""
    code = _code(path)
    for name in re.findall(r"[A-Za-z_]\w*", text):
        given = code.definition(name, line)
        if given is not None and given[0] < line:
            return given[0]
    return 0


def _split(tokens: Sequence[Token], opening: int, closing: int, text: str) -> list[str]:
    """Return the texts of the arguments between two parentheses."""
    found = []
    first = opening + 1
    index = first
    depth = 0
    while index < closing:
        word = tokens[index].text
        if word in ("(", "[", "{"):
            index = matching_close(tokens, index) or closing
        elif word == "<" and tokens[index - 1].kind is TokenKind.IDENTIFIER:
            depth += 1
        elif word == ">" and depth:
            depth -= 1
        elif word == "," and not depth:
            found.append(text[tokens[first].start : tokens[index - 1].end])
            first = index + 1
        index += 1
    if first < closing:
        found.append(text[tokens[first].start : tokens[closing - 1].end])
    return found


def _opening(tokens: Sequence[Token], index: int) -> int | None:
    at = index + 1
    if at < len(tokens) and tokens[at].text == "<":
        depth = 0
        for inside in range(at, min(at + 64, len(tokens))):
            depth += {"<": 1, ">": -1}.get(tokens[inside].text, 0)
            at = inside + 1
            if depth == 0:
                break
    return at if at < len(tokens) and tokens[at].text == "(" else None


def _last_name(text: str) -> str:
    names = re.findall(r"[A-Za-z_]\w*", text.split("=")[0])
    return names[-1] if names else ""


def _base_name(text: str) -> str:
    """Return the variable that an expression of a tensor begins with."""
    found = re.match(r"^\s*(?:this\s*->\s*)?([A-Za-z_]\w*)\s*(?:\[.*\])?\s*$", text, re.DOTALL)
    return found[1] if found else ""
