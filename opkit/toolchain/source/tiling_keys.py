"""Branches by the tiling key that a source has taken while it is compiled.

    if constexpr (TILING_KEY_IS(1)) {...}      if (TILING_KEY_IS(1)) {...}

The vendor compiles a kernel once for each key; here a kernel has all of its keys, and a launch says
which one it is. Source: Ascend C API, TILING_KEY_IS.
"""

from __future__ import annotations

from opkit.toolchain.source.launch_rewrite import Edit
from opkit.toolchain.source.tokens import matching_close, significant, tokenize

__all__ = ["tiling_key_edits"]

_ASKING = frozenset(("TILING_KEY_IS", "TILING_KEY_LIST"))
_HEAD = ["if", "constexpr", "("]


def tiling_key_edits(text: str) -> tuple[Edit, ...]:
    """Return the edits that leave branches by the tiling key to the launch."""
    if "constexpr" not in text or not any(name in text for name in _ASKING):
        return ()
    tokens = significant(tokenize(text))
    edits = []
    for index in range(len(tokens) - 2):
        if [token.text for token in tokens[index : index + 3]] != _HEAD:
            continue
        close = matching_close(tokens, index + 2)
        if close and any(token.text in _ASKING for token in tokens[index + 2 : close]):
            edits.append(Edit(tokens[index + 1].start, tokens[index + 1].end, ""))
    return tuple(edits)
