"""The list of headers that a compiler read, as it writes it for make."""

from __future__ import annotations

import re

__all__ = ["parse_depfile"]

_CONTINUATION = re.compile(r"\\\r?\n")
_NAME = re.compile(r"(?:\\[ #\\]|\$\$|[^\s])+")


def parse_depfile(text: str) -> tuple[str, ...]:
    """Return the prerequisites of a depfile's rules, in order, each once.

    Source: GNU make manual, rule syntax; gcc and clang escape blanks and # by a backslash, $ as $$.
    """
    names: dict[str, None] = {}
    for rule in _CONTINUATION.sub(" ", text).splitlines():
        _, colon, prerequisites = rule.partition(": ")
        if not colon:
            continue
        for found in _NAME.findall(prerequisites):
            names[re.sub(r"\\([ #\\])", r"\1", found).replace("$$", "$")] = None
    return tuple(names)
