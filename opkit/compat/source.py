"""C++ source at token level: as much as telling names from each other needs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from opkit.toolchain import plain_code

__all__ = [
    "Word",
    "class_methods",
    "local_names",
    "tokens_of",
    "variable_names",
    "words_of",
]

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.']*|::|->|<<<|>>>|&&|\|\||[^\s\w]")
_IDENTIFIER = re.compile(r"[^\W\d]\w*$")
_DECLARING = {"class", "struct", "enum", "union", "namespace", "using", "typename", "define"}
_CONSTANT = ("const", "constexpr")
# Words from `const` to what ends a constant's name: types may be qualified, and templates.
_CONSTANT_WORDS = 16
_NO_TYPE = {"return", "else", "case", "goto", "new", "delete", "throw", "do", "and", "or", "not"}


@dataclass(frozen=True)
class Word:
    """One identifier with what stands around it."""

    text: str
    before: str
    """The token before it, empty at the start."""
    qualifier: str
    """What stands before a `::` before it; empty for a global `::x` and for none."""
    after: str
    """The token behind it."""


def tokens_of(code: str) -> list[str]:
    """Return the tokens of code without comments."""
    return _TOKEN.findall(code)


def words_of(tokens: list[str]) -> Iterator[Word]:
    """Yield every identifier with its surroundings."""
    for index, token in enumerate(tokens):
        if not (token[0].isalpha() or token[0] == "_"):
            continue
        before = tokens[index - 1] if index else ""
        qualifier = ""
        if before == "::" and index > 1 and _IDENTIFIER.match(tokens[index - 2]):
            qualifier = tokens[index - 2]
        after = tokens[index + 1] if index + 1 < len(tokens) else ""
        if before == "template" and index > 1:
            # tensor.template ReinterpretCast<half>()
            before = tokens[index - 2]
        yield Word(token, before, qualifier, after)


def local_names(tokens: list[str]) -> set[str]:
    """Return the names that the code itself defines: types, namespaces, macros, functions and
    constants."""
    found: set[str] = set()
    for index, token in enumerate(tokens):
        if token in _DECLARING and index + 1 < len(tokens):
            following = tokens[index + 1]
            if following in ("class", "struct") and index + 2 < len(tokens):
                following = tokens[index + 2]
            behind = tokens[index + 2] if index + 2 < len(tokens) else ""
            # `using AscendC::Add;` and `class Outer::Inner` define nothing new by their first word.
            if behind != "::":
                found.add(following)
        elif token in _CONSTANT:
            found.update(_constant_name(tokens, index))
        elif token == "(" and index > 1 and _is_definition(tokens, index):
            found.add(tokens[index - 1])
    return found


def variable_names(tokens: list[str]) -> set[str]:
    """Return the names that follow a type: variables, parameters and members foremost."""
    found: set[str] = set()
    for before, token in itertools.pairwise(tokens):
        is_type = before == ">" or (_IDENTIFIER.match(before) and before not in _NO_TYPE)
        if is_type and _IDENTIFIER.match(token):
            found.add(token)
    # Type a, b, c;
    for index in range(1, len(tokens) - 1):
        before, token, after = tokens[index - 1 : index + 2]
        if before == "," and after in (",", ";") and (after == ";" or tokens[index - 2] in found):
            found.add(token)
    return found


def class_methods(code: str) -> set[str]:
    """Return the names that class bodies declare with parameters, methods foremost."""
    tokens = tokens_of(plain_code(code))
    found: set[str] = set()
    # One entry an open brace: whether it is a class body.
    scopes: list[bool] = []
    statement: list[str] = []
    for index, token in enumerate(tokens):
        if token == "{":
            scopes.append(_opens_class(statement))
            statement = []
        elif token == "}":
            if scopes:
                scopes.pop()
            statement = []
        elif token == ";":
            statement = []
        else:
            # A default value's call declares nothing, a template parameter's default does not hide.
            is_head = token == "(" and index and scopes and scopes[-1]
            if is_head and "=" not in _outside_angles(statement):
                found.add(tokens[index - 1])
            statement.append(token)
    return found


def _opens_class(statement: list[str]) -> bool:
    """Whether the words before a brace head a class: not a function whose result is one."""
    return any(word in ("class", "struct") for word in _outside_angles(statement)) and (
        ")" not in statement or statement[-1] != ")"
    )


def _outside_angles(statement: list[str]) -> Iterator[str]:
    depth = 0
    for word in statement:
        if word == "<":
            depth += 1
        elif word in (">", ">>>"):
            depth -= len(word)
        elif depth <= 0:
            yield word


def _constant_name(tokens: list[str], start: int) -> Iterator[str]:
    """Yield the name in `const TYPE NAME =`, or with `{` or `[` behind it."""
    for index in range(start + 1, min(start + _CONSTANT_WORDS, len(tokens))):
        token = tokens[index]
        if token in ("=", "{", "["):
            name, before = tokens[index - 1], tokens[index - 2]
            is_typed = index > start + 2 and before not in ("::", ".", "->")
            if is_typed and _IDENTIFIER.match(name):
                yield name
            return
        if token in ("(", ")", ";"):
            return


def _is_definition(tokens: list[str], opening: int) -> bool:
    """Whether `name(` begins a function's definition: a type before it, a body behind."""
    name, before = tokens[opening - 1], tokens[opening - 2]
    if not _IDENTIFIER.match(name) or before in _NO_TYPE:
        return False
    if not (_IDENTIFIER.match(before) or before in ("*", "&", ">")):
        return False
    depth = 0
    for index in range(opening, min(opening + 400, len(tokens))):
        if tokens[index] == "(":
            depth += 1
        elif tokens[index] == ")":
            depth -= 1
            if depth == 0:
                behind = tokens[index + 1 : index + 4]
                return "{" in behind[:1] or behind[:2] in (["const", "{"], ["noexcept", "{"])
    return False
