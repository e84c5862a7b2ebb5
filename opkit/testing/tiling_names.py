"""Whether a kernel's text chooses by its tiling data: conditions that read them, or copies of them.

Read from words, not compiled: a name that is given an expression with tiling data in it stands for
them wherever it is seen, and so does the parameter of a function that is called with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

__all__ = ["branches_by_data"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_GIVEN = re.compile(r"\bGET_TILING_DATA(\w*)\s*\(([^()]*)\)")
_POINTER = re.compile(r"\b\w*[tT]iling\w*\s*[*&]\s*(?:__restrict\w*\s+)?(\w+)")
_IS_TILING = re.compile(r"[tT]iling")
_ASSIGNED = re.compile(
    r"([A-Za-z_]\w*)(?:\s*\[[^\[\];]*\])?\s*(?:[-+*/%|&]|<<|>>)?=(?![=])([^;{}]*)|"
    r"([A-Za-z_]\w*)\s*\{([^;{}]*)\}"
)
_CALL = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^<>;{}()]*>)?\s*\(")
_CHOICE = re.compile(r"\b(?:if(?:\s+constexpr)?|switch)\s*\(")
_ROUNDS = 4
"""Through so many names tiling data are followed."""


def branches_by_data(texts: Sequence[str]) -> bool:
    """Whether conditions in a kernel's files read its tiling data."""
    text = "\n".join(_COMMENT.sub(" ", text) for text in texts)
    given = list(_given(text))
    structs = {name for name, is_member in given if not is_member} | set(_POINTER.findall(text))
    calls = [(match[1], _arguments(text, match.end())) for match in _CALL.finditer(text)]
    values = {name for name, is_member in given if is_member}
    conditions = [_inside(text, match.end()) for match in _CHOICE.finditer(text)]
    conditions += _chosen(text)

    def reads(expression: str) -> bool:
        for match in _NAME.finditer(expression):
            name, behind = match[0], expression[match.end() :].lstrip()
            is_struct = name in structs or _IS_TILING.match(name) is not None
            if is_struct and behind.startswith((".", "->")):
                return True
            if name in values and not behind.startswith("("):
                return True
        return False

    for _ in range(_ROUNDS):
        if any(map(reads, conditions)):
            return True
        before = len(values)
        for match in _ASSIGNED.finditer(text):
            name, expression = (match[1], match[2]) if match[1] else (match[3], match[4])
            if reads(expression):
                values.add(name)
        _follow_calls(calls, reads, values)
        if len(values) == before:
            break
    return any(map(reads, conditions))


def _given(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what macros call the tiling data, or one member of them: it stands before the last."""
    for match in _GIVEN.finditer(text):
        words = [word.strip() for word in match[2].split(",")]
        if len(words) > 1:
            yield words[-2], match[1] == "_MEMBER"


def _follow_calls(
    calls: Sequence[tuple[str, list[str]]], reads: Callable[[str], bool], values: set[str]
) -> None:
    """Take what parameters get: of a function they stand where its arguments stand in calls."""
    given: dict[tuple[str, int], set[int]] = {}
    for name, arguments in calls:
        places = {at for at, argument in enumerate(arguments) if reads(argument)}
        given.setdefault((name, len(arguments)), set()).update(places)
    for name, arguments in calls:
        for at in given[(name, len(arguments))]:
            # A declaration: a type and a name. In a call there is nothing new to take.
            words = _NAME.findall(arguments[at].split("=")[0])
            if len(words) > 1 and re.fullmatch(r"[\w\s:<>*&,]+", arguments[at].split("=")[0]):
                values.add(words[-1])


def _chosen(text: str) -> Iterator[str]:
    """Yield what stands in front of question marks."""
    for match in re.finditer(r"[;{}=(,]([^;{}=]*(?:[<>=!]=)?[^;{}=?]*)\?", text):
        yield match[1]


def _inside(text: str, begin: int) -> str:
    """Return what stands in parentheses of which the first is just in front of a place."""
    depth = 1
    for at in range(begin, min(len(text), begin + 4000)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[begin:at]
    return ""


def _arguments(text: str, begin: int) -> list[str]:
    found, depth, start = [], 0, 0
    inside = _inside(text, begin)
    for at, sign in enumerate(inside):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append(inside[start:at])
            start = at + 1
    return [*found, inside[start:]] if inside.strip() else []
