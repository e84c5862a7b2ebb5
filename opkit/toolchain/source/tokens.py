"""C++ source as tokens with positions: as much of the language as rewriting launches needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "Token",
    "TokenKind",
    "matching_close",
    "matching_open",
    "plain_code",
    "significant",
    "split_at_commas",
    "tokenize",
]


class TokenKind(Enum):
    """What a token is; comments and white space are kept so that nothing of the text is lost."""

    IDENTIFIER = "identifier"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    PUNCTUATION = "punctuation"
    COMMENT = "comment"
    SPACE = "space"


@dataclass(frozen=True)
class Token:
    """One token."""

    kind: TokenKind
    text: str
    start: int
    """Offset of its first character in the source."""

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        return self.start + len(self.text)


# A lone quote (an apostrophe in an #error line, say) falls through to punctuation; one behind a
# digit is a number's.
_SILENT = r"""
      (?P<raw>(?<!\w)(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?\)(?P=delimiter)")
    | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<string>(?:(?<!\w)(?:u8|[uUL]))?"(?:\\.|[^"\\\n])*")
    | (?P<character>(?<!\w)(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    """
_SILENT_PART = re.compile(_SILENT, re.VERBOSE | re.DOTALL)
# ">>" is no token of its own: it closes two template argument lists more often than it shifts.
_TOKEN = re.compile(
    rf"""
      {_SILENT}
    | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    | (?P<identifier>[^\W\d]\w*)
    | (?P<space>(?:\s|\\\r?\n)+)
    | (?P<punctuation><<<|>>>|<<|<=|>=|->|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"raw": TokenKind.STRING} | {kind.value: kind for kind in TokenKind}
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = {close: opening for opening, close in _PAIRS.items()}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text`, which joined give `text` again."""
    tokens = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup if found.lastgroup != "delimiter" else "raw"
        tokens.append(Token(_KINDS[kind or "punctuation"], found[0], found.start()))
    return tokens


def plain_code(text: str) -> str:
    """Return `text` with comments and literals blanked, line for line."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n") or " "

    return _SILENT_PART.sub(blank, text)


def significant(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens that the compiler sees: no comments, no white space."""
    silent = (TokenKind.COMMENT, TokenKind.SPACE)
    return [token for token in tokens if token.kind not in silent]


def matching_close(tokens: Sequence[Token], index: int) -> int | None:
    """Return the index of the bracket that closes the one at `index`; None where none does."""
    expected: list[str] = []
    for position in range(index, len(tokens)):
        text = tokens[position].text
        if tokens[position].kind is not TokenKind.PUNCTUATION:
            continue
        if text in _PAIRS:
            expected.append(_PAIRS[text])
        elif text in _CLOSERS:
            if not expected or expected.pop() != text:
                return None
            if not expected:
                return position
    return None


def matching_open(tokens: Sequence[Token], index: int) -> int | None:
    """Return the index of the bracket that the one at `index` closes; None where none does.

    A `>` or `>>>` closes template argument lists; brackets in between are skipped whole.
    """
    if tokens[index].text in (">", ">>>"):
        return _matching_angle(tokens, index)
    expected: list[str] = []
    for position in range(index, -1, -1):
        text = tokens[position].text
        if tokens[position].kind is not TokenKind.PUNCTUATION:
            continue
        if text in _CLOSERS:
            expected.append(_CLOSERS[text])
        elif text in _PAIRS:
            if not expected or expected.pop() != text:
                return None
            if not expected:
                return position
    return None


def split_at_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts between commas; an empty one, behind a last comma, is none."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.text == "," and depth == 0:
            parts.append([])
            continue
        depth += (token.text in "([{") - (token.text in ")]}")
        parts[-1].append(token)
    return [part for part in parts if part]


def _matching_angle(tokens: Sequence[Token], index: int) -> int | None:
    depth = 0
    position = index
    while position >= 0:
        token = tokens[position]
        if token.kind is TokenKind.PUNCTUATION:
            if token.text in (">", ">>>"):
                depth += len(token.text)
            elif token.text == "<":
                depth -= 1
                if depth == 0:
                    return position
            elif token.text in _CLOSERS:
                opening = matching_open(tokens, position)
                if opening is None:
                    return None
                position = opening
            elif token.text in (";", "{", "("):
                return None
        position -= 1
    return None
