"""Whether a kernel's text chooses by its tiling data: conditions that read them, or copies of them.

Read from tokens, not compiled: a name that is given an expression with tiling data in it stands for
them wherever it is seen, and so does the parameter of a function that is called with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from .tokens import (
    Token,
    TokenKind,
    matching_close,
    matching_open,
    significant,
    split_at_commas,
    tokenize,
)

__all__ = ["branches_by_tiling_data", "whole_numbers"]

_Tokens = Sequence[Token]
_DECLARES = re.compile(r"[\w:<>*&,]+")
_ROUNDS = 4
"""Through so many names tiling data are followed."""


def branches_by_tiling_data(texts: Sequence[str]) -> bool:
    """Whether conditions in a kernel's files read its tiling data."""
    tokens = significant(tokenize("\n".join(texts)))
    calls = list(_calls(tokens))
    given = list(_given(calls))
    structs = {name for name, is_member in given if not is_member} | set(_pointers(tokens))
    values = {name for name, is_member in given if is_member}
    conditions = [*_conditions(tokens), *_before_questions(tokens)]
    assignments = [*_assignments(tokens), *_braced(tokens)]

    def reads(expression: _Tokens) -> bool:
        ends = [*(token.text for token in expression[1:]), ""]
        return any(
            (behind in (".", "->") and (token.text in structs or _names_tiling(token)))
            or (behind != "(" and token.text in values)
            for token, behind in zip(expression, ends, strict=True)
        )

    for _ in range(_ROUNDS):
        if any(map(reads, conditions)):
            return True
        before = len(values)
        values |= {name for name, expression in assignments if reads(expression)}
        _follow_calls(calls, reads, values)
        if len(values) == before:
            return False
    return any(map(reads, conditions))


def whole_numbers(text: str) -> set[int]:
    """Return the whole numbers of a source, and the products of those that are multiplied there."""
    tokens = significant(tokenize(text))
    values = [_whole_number(token) for token in tokens]
    found = {value for value in values if value is not None}
    for at in range(1, len(tokens) - 1):
        one, other = values[at - 1], values[at + 1]
        if tokens[at].text == "*" and one is not None and other is not None:
            found.add(one * other)
    return found


def _whole_number(token: Token) -> int | None:
    if token.kind is not TokenKind.NUMBER:
        return None
    try:
        return int(token.text.replace("'", "").rstrip("uUlL"), 0)
    except ValueError:
        return None


def _names_tiling(token: Token) -> bool:
    return token.kind is TokenKind.IDENTIFIER and token.text[1:].startswith("iling")


def _calls(tokens: _Tokens) -> Iterator[tuple[str, list[list[Token]]]]:
    """Yield name and arguments of calls, macros and declarations of functions."""
    for index, token in enumerate(tokens):
        if token.text != "(" or index == 0:
            continue
        at: int | None = index - 1
        if tokens[index - 1].text == ">":
            opened = matching_open(tokens, index - 1)
            at = None if opened is None or opened == 0 else opened - 1
        close = matching_close(tokens, index)
        if at is not None and close is not None and tokens[at].kind is TokenKind.IDENTIFIER:
            yield tokens[at].text, split_at_commas(tokens[index + 1 : close])


def _given(calls: Sequence[tuple[str, list[list[Token]]]]) -> Iterator[tuple[str, bool]]:
    """Yield what macros call the tiling data, or one member of them: it stands before the last."""
    for name, arguments in calls:
        if name.startswith("GET_TILING_DATA") and len(arguments) > 1:
            yield arguments[-2][-1].text, name.endswith("_MEMBER")


def _pointers(tokens: _Tokens) -> Iterator[str]:
    """Yield the names of pointers and references to types that are named like tiling data."""
    for index, token in enumerate(tokens[:-2]):
        is_type = token.kind is TokenKind.IDENTIFIER and token.text.lower().find("tiling") >= 0
        if not is_type or tokens[index + 1].text not in "*&":
            continue
        name = tokens[index + 2]
        if name.text.startswith("__restrict") and index + 3 < len(tokens):
            name = tokens[index + 3]
        if name.kind is TokenKind.IDENTIFIER:
            yield name.text


def _conditions(tokens: _Tokens) -> Iterator[_Tokens]:
    """Yield what `if` and `switch` ask."""
    for index, token in enumerate(tokens[:-1]):
        if token.text not in ("if", "switch"):
            continue
        opening = index + 1 + (tokens[index + 1].text == "constexpr")
        is_open = opening < len(tokens) and tokens[opening].text == "("
        close = matching_close(tokens, opening) if is_open else None
        if close is not None:
            yield tokens[opening + 1 : close]


def _before_questions(tokens: _Tokens) -> Iterator[_Tokens]:
    """Yield what stands in front of question marks."""
    for index, token in enumerate(tokens):
        if token.text != "?":
            continue
        begin = index
        while begin > 0 and not _begins_expression(tokens, begin - 1):
            begin -= 1
        yield tokens[begin:index]


def _begins_expression(tokens: _Tokens, index: int) -> bool:
    return tokens[index].text in (";", "{", "}", "(", ",") or _assigns(tokens, index)


def _assigns(tokens: _Tokens, index: int) -> bool:
    """Whether a sign of equality is an assignment's."""
    if tokens[index].text != "=":
        return False
    around = [tokens[at].text for at in (index - 1, index + 1) if 0 <= at < len(tokens)]
    return "=" not in around and around[0] not in ("!", "<", ">")


def _assignments(tokens: _Tokens) -> Iterator[tuple[str, _Tokens]]:
    """Yield names, members and arrays that are assigned, with what they are given."""
    for index in range(1, len(tokens)):
        if not _assigns(tokens, index):
            continue
        at = index - 1
        while at > 0 and tokens[at].text in ("+", "-", "*", "/", "%", "|", "&", "^", "<<"):
            at -= 1
        if tokens[at].text == "]":
            opened = matching_open(tokens, at)
            at = at if opened is None else opened - 1
        if at >= 0 and tokens[at].kind is TokenKind.IDENTIFIER:
            yield tokens[at].text, tokens[index + 1 : _statement_end(tokens, index + 1)]


def _statement_end(tokens: _Tokens, begin: int) -> int:
    ends = (at for at in range(begin, len(tokens)) if tokens[at].text in (";", "{", "}"))
    return next(ends, len(tokens))


def _braced(tokens: _Tokens) -> Iterator[tuple[str, _Tokens]]:
    """Yield names that are given a value in braces."""
    for index in range(1, len(tokens)):
        if tokens[index].text != "{" or tokens[index - 1].kind is not TokenKind.IDENTIFIER:
            continue
        end = _statement_end(tokens, index + 1)
        if end < len(tokens) and tokens[end].text == "}":
            yield tokens[index - 1].text, tokens[index + 1 : end]


def _follow_calls(
    calls: Sequence[tuple[str, list[list[Token]]]],
    reads: Callable[[_Tokens], bool],
    values: set[str],
) -> None:
    """Take what parameters get: of a function they stand where its arguments stand in calls."""
    given: dict[tuple[str, int], set[int]] = {}
    for name, arguments in calls:
        places = {at for at, argument in enumerate(arguments) if reads(argument)}
        given.setdefault((name, len(arguments)), set()).update(places)
    for name, arguments in calls:
        for at in given[(name, len(arguments))]:
            # A declaration: a type and a name. In a call there is nothing new to take.
            texts = [token.text for token in arguments[at]]
            declared = texts[: texts.index("=")] if "=" in texts else texts
            words = [text for text in declared if text.isidentifier()]
            if len(words) > 1 and _DECLARES.fullmatch("".join(declared)):
                values.add(words[-1])
