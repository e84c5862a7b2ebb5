"""Three texts to one: what was generated, what the user made of it, what would be generated now."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

__all__ = ["merge_texts"]


def merge_texts(base: str, mine: str, new: str) -> str | None:
    """Return `mine` with the changes from `base` to `new` made in it.

    Returns None where both changed the same lines, or lines next to each other, differently.
    """
    old, own, other = (text.splitlines(keepends=True) for text in (base, mine, new))
    own_changes, other_changes = _changes(old, own), _changes(old, other)
    merged: list[str] = []
    at = 0
    while own_changes or other_changes:
        ours = own_changes[0] if own_changes else None
        theirs = other_changes[0] if other_changes else None
        if ours is not None and ours == theirs:
            own_changes.pop(0)
            other_changes.pop(0)
            chosen = ours
        elif ours is not None and theirs is not None and _touch(ours, theirs):
            return None
        elif theirs is None or (ours is not None and ours[:2] < theirs[:2]):
            chosen = own_changes.pop(0)
        else:
            chosen = other_changes.pop(0)
        start, end, lines = chosen
        merged += old[at:start]
        merged += lines
        at = end
    return "".join([*merged, *old[at:]])


_Change = tuple[int, int, Sequence[str]]


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    """Return (start, end, new lines) of each run of lines of `old` that is replaced."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        (start, end, tuple(new[new_start:new_end]))
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _touch(a: _Change, b: _Change) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]
