"""Wrong versions of a correct kernel: a synchronisation less, a shorter copy, another offset.

Mutants are made of tokens, so macros, templates and both dialects of Ascend C are mutated alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from opkit.toolchain import (
    Token,
    TokenKind,
    matching_close,
    matching_open,
    significant,
    tokenize,
)

__all__ = ["Mutant", "MutantKind", "mutants_of"]


class MutantKind(Enum):
    """What is done to the kernel."""

    DELETE_SYNC = "delete sync"
    """A flag, barrier, queue call or signal between cores is left out."""
    WEAKEN_SYNC = "weaken sync"
    """A barrier of all pipes becomes one of the vector pipe."""
    SHRINK_COPY = "shrink copy"
    """A copy moves a data block or 32 elements less, half where it has no more than those."""
    SHIFT_OFFSET = "shift offset"
    """An offset into a tensor or an argument is 32 elements more."""


@dataclass(frozen=True)
class Mutant:
    """One change of one source."""

    kind: MutantKind
    line: int
    start: int
    """Offset of the text that is replaced."""
    old: str
    new: str

    def apply(self, text: str) -> str:
        """Return the source with the change; line numbers stay."""
        return text[: self.start] + self.new + text[self.start + len(self.old) :]

    @property
    def label(self) -> str:
        """The kind, and the text that is changed, on one line."""
        return f"{self.kind.value}: {' '.join(self.old.split())}"


_SYNCS = {
    *("SetFlag", "WaitFlag", "PipeBarrier", "SyncAll", "CrossCoreSetFlag", "CrossCoreWaitFlag"),
    *("IBSet", "IBWait", "EnQue", "FreeTensor", "NotifyNextBlock", "WaitPreBlock"),
    *("set_flag", "wait_flag", "pipe_barrier"),
}
_COPIES = {"DataCopy", "DataCopyPad", "Copy"}
_BLOCK_PARAMS = {"DataCopyParams"}
_BYTE_PARAMS = {"DataCopyExtParams"}
_API_NAME = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")
_STATEMENT_STARTS = {";", "{", "}", ")", ":", "else"}
_CHAIN = {".", "->", "::"}
_SHIFT = 32


def mutants_of(text: str) -> tuple[Mutant, ...]:
    """Return the mutants of a kernel source, in the order of the source."""
    found = list(_Source(text).mutants())
    unique = {(mutant.start, mutant.old, mutant.new): mutant for mutant in found}
    return tuple(sorted(unique.values(), key=lambda mutant: (mutant.start, mutant.new)))


class _Source:
    """One source as tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        directives = _directive_spans(text)
        self.tokens: list[Token] = [
            token
            for token in significant(tokenize(text))
            if not any(start <= token.start < end for start, end in directives)
        ]

    def mutants(self) -> Iterator[Mutant]:
        for index, token in enumerate(self.tokens):
            if token.kind is not TokenKind.IDENTIFIER:
                continue
            if token.text in _BLOCK_PARAMS | _BYTE_PARAMS:
                yield from self._of_params(index)
            opening = self._call_at(index)
            if opening is None:
                continue
            closing = matching_close(self.tokens, opening)
            if closing is None:
                continue
            yield from self._of_call(index, opening, closing)

    def _of_call(self, index: int, opening: int, closing: int) -> Iterator[Mutant]:
        name = self.tokens[index].text
        first = self._statement_start(index)
        is_statement = first is not None and self._text_at(closing + 1) == ";"
        if name in _SYNCS and is_statement and first is not None:
            start, end = self.tokens[first].start, self.tokens[closing].end
            yield self._mutant(MutantKind.DELETE_SYNC, start, end, "")
            inner = self.text[self.tokens[index].start : end]
            if "PIPE_ALL" in inner:
                weaker = inner.replace("PIPE_ALL", "PIPE_V")
                yield self._mutant(MutantKind.WEAKEN_SYNC, self.tokens[index].start, end, weaker)
        arguments = self._arguments(opening, closing)
        if name in _COPIES and is_statement and len(arguments) == 3:
            yield from self._shrunk(*arguments[2], "")
        if name == "SetGlobalBuffer" and arguments:
            start, end = arguments[0]
            shifted = f"({self.text[start:end]}) + {_SHIFT}"
            yield self._mutant(MutantKind.SHIFT_OFFSET, start, end, shifted)
        elif is_statement and _API_NAME.match(name):
            yield from self._shifted(opening, closing)

    def _of_params(self, index: int) -> Iterator[Mutant]:
        """Mutate the second field of a copy's parameters: a block's length."""
        type_name = "uint16_t" if self.tokens[index].text in _BLOCK_PARAMS else "uint32_t"
        for opening in range(index + 1, min(index + 4, len(self.tokens))):
            text = self.tokens[opening].text
            if text in ("{", "("):
                closing = matching_close(self.tokens, opening)
                arguments = self._arguments(opening, closing) if closing is not None else []
                if len(arguments) >= 2:
                    yield from self._shrunk(*arguments[1], type_name)
                return
            if text == ";":
                return

    def _shrunk(self, start: int, end: int, type_name: str) -> Iterator[Mutant]:
        """Make a length shorter; parameters, which may stand in its place, have their own."""
        length = self.text[start:end]
        if not type_name and ("{" in length or self._is_params(length)):
            return
        less = 1 if type_name == "uint16_t" else _SHIFT
        shorter = f"({length}) > {less} ? ({length}) - {less} : ({length}) / 2"
        shorter = f"static_cast<{type_name}>({shorter})" if type_name else shorter
        yield self._mutant(MutantKind.SHRINK_COPY, start, end, shorter)

    def _is_params(self, name: str) -> bool:
        """Whether a name is declared as a copy's parameters somewhere in the source."""
        declared = rf"Params(?:<[^;>]*>)?[\s&]+{re.escape(name)}\b"
        return re.search(declared, self.text) is not None

    def _shifted(self, opening: int, closing: int) -> Iterator[Mutant]:
        for index in range(opening + 1, closing):
            is_subscript = self.tokens[index].text == "[" and (
                self.tokens[index - 1].kind is TokenKind.IDENTIFIER
                or self.tokens[index - 1].text == ")"
            )
            end = matching_close(self.tokens, index) if is_subscript else None
            if end is None or end == index + 1:
                continue
            first, last = self.tokens[index + 1].start, self.tokens[end - 1].end
            shifted = f"({self.text[first:last]}) + {_SHIFT}"
            yield self._mutant(MutantKind.SHIFT_OFFSET, first, last, shifted)

    def _mutant(self, kind: MutantKind, start: int, end: int, new: str) -> Mutant:
        old = self.text[start:end]
        # Whatever lines the old text had, so that findings point at the user's own.
        new += "\n" * (old.count("\n") - new.count("\n"))
        return Mutant(kind, self.text.count("\n", 0, start) + 1, start, old, new)

    def _text_at(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def _call_at(self, index: int) -> int | None:
        """Return the index of a call's parenthesis behind its name and template arguments."""
        at = index + 1
        if self._text_at(at) == "<":
            at = self._behind_angles(at)
        return at if self._text_at(at) == "(" else None

    def _behind_angles(self, index: int) -> int:
        depth = 0
        for at in range(index, min(index + 64, len(self.tokens))):
            text = self.tokens[at].text
            depth += {"<": 1, ">": -1, ">>>": -3}.get(text, 0)
            if depth <= 0:
                return at + 1
            if text in (";", "{"):
                break
        return len(self.tokens)

    def _statement_start(self, index: int) -> int | None:
        """Return the first token of the statement that is this call; None where it is a part."""
        at = index
        while self._text_at(at - 1) in _CHAIN:
            at -= 2
            if self._text_at(at) in ("]", ")"):
                opened = matching_open(self.tokens, at)
                if opened is None:
                    return None
                at = opened - 1
            elif self._text_at(at) == "template":
                at -= 1
        return at if self._text_at(at - 1) in _STATEMENT_STARTS else None

    def _arguments(self, opening: int, closing: int) -> list[tuple[int, int]]:
        """Return the offsets of a call's arguments; template lists in them are not split."""
        spans = []
        first = opening + 1
        index = first
        while index < closing:
            text = self.tokens[index].text
            if text in ("(", "[", "{"):
                index = matching_close(self.tokens, index) or closing
            elif text == "<" and self.tokens[index - 1].kind is TokenKind.IDENTIFIER:
                behind = self._behind_angles(index)
                if self._text_at(behind) in ("(", "{", "::") and behind < closing:
                    index = behind - 1
            elif text == ",":
                spans.append((self.tokens[first].start, self.tokens[index - 1].end))
                first = index + 1
            index += 1
        if first < closing:
            spans.append((self.tokens[first].start, self.tokens[closing - 1].end))
        return spans


def _directive_spans(text: str) -> list[tuple[int, int]]:
    lines = re.finditer(r"^[ \t]*#(?:\\\r?\n|[^\n])*", text, re.MULTILINE)
    return [(found.start(), found.end()) for found in lines]
