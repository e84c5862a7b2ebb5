"""Attention in one mixed kernel, as Ascend C: softmax(q kᵀ scale + mask) v, by tiles of keys."""

from __future__ import annotations

from dataclasses import dataclass

from opkit.dtypes import find_dtype

from ...ir import Location
from ..kernel_class import struct_of
from ..text import Text
from .cube_text import CUBE, STEPS
from .vector_text import ENTRY, VECTOR

__all__ = ["ATTENTION_FIELDS", "KEYS", "QUERIES", "AttentionKernel", "write_attention"]

QUERIES = 128
"""Rows of q that a cube core works on together, half of them on each of its vector cores."""
KEYS = 512
"""Rows of k and v of one step."""
SLOTS = 4
"""Steps whose scores, weights and partial sums lie in global memory at once."""

ATTENTION_FIELDS = (
    ("tasks", "int64_t", "groups of queries, of all batches"),
    ("groups", "int64_t", "of one batch"),
    ("queries", "int64_t", "rows of q"),
    ("keys", "int64_t", "rows of k and v"),
    ("width", "int64_t", "columns of q and k"),
    ("valueWidth", "int64_t", "columns of v"),
    ("keyGroup", "int64_t", "batches of q that follow one another and share keys and values"),
    ("ahead", "int64_t", "keys before the first query's own place, where later ones are hidden"),
    ("batchMask", "int64_t", "elements of the mask from one batch to the next; 0: one for all"),
    ("rowMask", "int64_t", "elements from row to row of the mask; 0: one for all"),
    ("queryHeads", "int64_t", "heads that lie beside each other in a row of q; 1: each apart"),
    ("keyHeads", "int64_t", "the same of k"),
    ("valueHeads", "int64_t", "the same of v"),
    ("resultHeads", "int64_t", "the same of the result"),
)
"""Name, C++ type and note of each member that is a whole number; the scale follows them."""


@dataclass(frozen=True)
class AttentionKernel:
    """What one kernel computes."""

    name: str
    dtype: str
    """Data type of q, k, v and the result: `float16` or `bfloat16`."""
    is_causal: bool
    """A query sees no key behind its own place."""
    mask: str | None
    """Data type of what is added to the scores; None for nothing."""
    location: Location | None = None

    @property
    def stem(self) -> str:
        """What the names of its classes begin with."""
        return struct_of(self.name).removesuffix("Tiling")


def write_attention(kernel: AttentionKernel) -> Text:
    """Return the kernel's source, without its head."""
    out = Text()
    row = find_dtype(kernel.dtype)
    mask = find_dtype(kernel.mask) if kernel.mask else None
    assert row is not None
    words = {
        "STEM": kernel.stem,
        "MASKTYPE": mask.kernel if mask else "",
        "TYPE": row.kernel,
        "QUERIES": str(QUERIES),
        "KEYS": str(KEYS),
        "SLOTS": str(SLOTS),
        "ROWCOUNT": "16" if mask else "24",
        "NAME": kernel.name,
    }
    out(f"// How {kernel.name} is split: written by the host for each launch.")
    out(f"struct {kernel.stem}Tiling {{")
    for name, kind, note in ATTENTION_FIELDS:
        out(f"{kind} {name};{f'  // {note}' if note else ''}")
    out("float scale;")
    out("uint32_t reserved;")
    out("};")
    out()
    flags = {"causal": kernel.is_causal, "mask": kernel.mask is not None}
    flags |= {"cast": kernel.mask not in (None, "float32")}
    for part in (STEPS, CUBE, VECTOR, ENTRY):
        for line in _chosen(part, flags):
            for word, text in words.items():
                line = line.replace(word, text)
            is_work = line.startswith(("Mmad(", "Fixpipe(", "Exp(", "DataCopy"))
            out(line, kernel.location if is_work else None)
    return out


def _chosen(text: str, flags: dict[str, bool]) -> list[str]:
    """Return the lines of a text that these flags leave: `@if causal`, `@if not mask`, `@end`."""
    found: list[str] = []
    keeps = [True]
    for line in text.strip().splitlines():
        line = line.strip()
        if line.startswith("@if "):
            words = line.split()[1:]
            keeps.append(keeps[-1] and flags[words[-1]] != (words[0] == "not"))
        elif line == "@end":
            keeps.pop()
        elif keeps[-1]:
            found.append(line)
    return found
