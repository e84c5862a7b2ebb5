"""Names that are nearly Ascend C's: how the API spells what a compiler does not know."""

from __future__ import annotations

import functools
import re

from opkit import emulator

__all__ = ["spelling_hint"]

_NO_MEMBER = re.compile(
    r"has no member named ['‘](\w+)['’]|no member named '(\w+)' in|['‘](\w+)['’] was not declared"
    r"|['‘](\w+)['’] is not a member of|use of undeclared identifier '(\w+)'"
)
_LITERAL = re.compile(
    r"numeric literal operator .*\"\"\s?h\b|invalid suffix 'h' on floating constant"
)
_DECLARED = re.compile(r"\b([A-Z][A-Za-z0-9]+)\s*\(")


def spelling_hint(message: str) -> str:
    """Return what to write instead, for a message about an unknown name; else nothing."""
    if _LITERAL.search(message):
        return "Ascend C has no literal of half: write half(1.0f)"
    found = _NO_MEMBER.search(message)
    if found is None:
        return ""
    name = next(group for group in found.groups() if group)
    known = _names().get(_folded(name))
    # GCC and clang often know it themselves.
    is_named = known is not None and re.search(rf"\b{known}\b", message) is not None
    return f"Ascend C spells it {known}" if known and not is_named else ""


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


@functools.cache
def _names() -> dict[str, str]:
    """Return the functions of the API by their folded names, from the emulator's own headers."""
    names: dict[str, str] = {}
    folder = emulator.include_dir() / "opkit" / "api"
    for header in sorted(folder.rglob("*.h")):
        for name in _DECLARED.findall(header.read_text(encoding="utf-8", errors="replace")):
            names.setdefault(_folded(name), name)
    return names
