"""Classes that C++17 takes for aggregates and C++20 does not, as it would take them in C++17.

A class whose one constructor is declared and defaulted in it is initialised by `{a, b}` member by
member in C++17. C++20 asks that nothing be declared, so what is declared becomes another function:

    Step() = default;           void opkit_defaulted(){}

Source: C++20, [dcl.init.aggr] 9.4.2 and its note on C++17, [diff.cpp17.dcl.decl].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opkit.toolchain.source.launch_rewrite import Edit
from opkit.toolchain.source.tokens import (
    Token,
    TokenKind,
    matching_close,
    significant,
    tokenize,
)

__all__ = ["aggregate_edits"]

_DEFAULTED = re.compile(r"\(\s*\)\s*=\s*default\b")
_REST = ("(", ")", "=", "default", ";")


def aggregate_edits(text: str) -> tuple[Edit, ...]:
    """Return the edits that leave a class without constructors if its one is a defaulted one."""
    if _DEFAULTED.search(text) is None:
        return ()
    tokens = significant(tokenize(text))
    scopes: list[int] = []
    edits: list[Edit] = []
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.PUNCTUATION:
            if token.text == "{":
                scopes.append(index)
            elif token.text == "}" and scopes:
                scopes.pop()
        elif scopes and _is_defaulted(tokens, index):
            names = list(_constructors(tokens, scopes[-1], token.text))
            if names == [index]:
                edits.append(Edit(token.start, token.end, "void opkit_defaulted"))
                edits.append(Edit(tokens[index + 3].start, tokens[index + 5].end, "{}"))
    return tuple(edits)


def _is_defaulted(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].kind is not TokenKind.IDENTIFIER or tokens[index - 1].text in (
        "~",
        "explicit",
    ):
        return False
    return tuple(token.text for token in tokens[index + 1 : index + 6]) == _REST


def _constructors(tokens: Sequence[Token], opening: int, name: str) -> Iterator[int]:
    """Yield where the class whose body begins at `opening` declares constructors."""
    closing = matching_close(tokens, opening) or len(tokens)
    position = opening + 1
    while position < closing:
        text = tokens[position].text
        if text == "{":
            position = matching_close(tokens, position) or closing
        elif text == name and tokens[position + 1].text == "(" and tokens[position - 1].text != "~":
            yield position
        position += 1
