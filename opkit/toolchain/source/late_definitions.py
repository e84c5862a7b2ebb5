"""Macros of the command line that are words of opkit's own headers, such as `-DFIX` or `-DS=4`.

The vendor's headers have other words, so public projects define such. They become definitions that
follow the headers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["late_macros"]

_DEFINED = re.compile(r"-D(\w+)(?:=(.*))?", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z]\w*")
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b.*$", re.MULTILINE)
_HEADER = "kernel_operator.h"


def late_macros(flags: Sequence[str], include_dir: Path) -> tuple[tuple[str, ...], str]:
    """Return the flags without those macros, and the text that defines them instead.

    The text goes in front of the source; it is empty where there are none.

    Args:
        flags: of a compiler, `-DNAME` each one word.
        include_dir: opkit's headers.
    """
    found = [(flag, _DEFINED.fullmatch(flag)) for flag in flags]
    if not any(match for _, match in found):
        return tuple(flags), ""
    words = _words(include_dir)
    kept, lines = [], []
    for flag, match in found:
        if match is None or match[1] not in words:
            kept.append(flag)
        else:
            lines.append(f"#define {match[1]} {'1' if match[2] is None else match[2]}\n")
    return tuple(kept), f'#include "{_HEADER}"\n{"".join(lines)}' if lines else ""


@functools.cache
def _words(include_dir: Path) -> frozenset[str]:
    """Return what the headers name, but for macros that they ask for: who sets these means it."""
    words, asked = set(), set()
    for pattern in ("*.h", "*.inc"):
        for header in (include_dir / "opkit").rglob(pattern):
            text = header.read_text(encoding="utf-8", errors="replace")
            for line in _CONDITION.findall(text):
                asked.update(_WORD.findall(line))
            words.update(_WORD.findall(text))
    return frozenset(words - asked)
