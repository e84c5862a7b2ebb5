"""The text of a piece of a formula."""

from __future__ import annotations

import ast
import functools
import re

__all__ = ["text_of"]


def text_of(source: str, node: ast.expr) -> str:
    """Return what a node was parsed from; empty where it has no place.

    `ast.get_source_segment` splits the whole text for each node, which takes seconds for a formula
    of a thousand terms.
    """
    if node.end_lineno is None or node.end_col_offset is None:
        return ""
    if node.lineno != node.end_lineno:
        return ast.get_source_segment(source, node) or ""
    line = _lines(source)[node.lineno - 1]
    return line[node.col_offset : node.end_col_offset].decode("utf-8")


@functools.lru_cache(maxsize=16)
def _lines(source: str) -> tuple[bytes, ...]:
    # Columns of a node count bytes.
    return tuple(line.encode("utf-8") for line in re.split("\r\n|\r|\n", source))
