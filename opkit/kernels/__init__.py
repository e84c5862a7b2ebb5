"""Kernels in Ascend C that are written by hand.

`opkit.torch_npu` compiles and launches them for the device `npu`; the compiler takes some of them
into its programs.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["folder", "header_text"]

_INCLUDE = re.compile(r'^#include "(\w+\.h)"\n', re.MULTILINE)


def folder() -> Path:
    """Return where their sources lie."""
    return Path(__file__).parent


def header_text(*names: str) -> str:
    """Return headers of theirs as text that needs none of the others."""
    seen: set[str] = set()
    return "".join(_expanded(name, seen) for name in names)


def _expanded(name: str, seen: set[str]) -> str:
    path = folder() / name
    if name in seen:
        return ""
    seen.add(name)
    text = path.read_text(encoding="utf-8").replace("#pragma once\n", "")

    def included(match: re.Match[str]) -> str:
        return _expanded(match[1], seen) if (folder() / match[1]).is_file() else match[0]

    return _INCLUDE.sub(included, text)
