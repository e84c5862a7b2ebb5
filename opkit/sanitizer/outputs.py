"""Outputs that no kernel writes: seen by running an operator on outputs of different content."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.sanitizer.finding import Finding, Location

__all__ = ["unwritten_outputs"]

_Array = NDArray[Any]


def unwritten_outputs(
    names: Sequence[str],
    zeroed: Sequence[_Array],
    run_poisoned: Callable[[], Sequence[_Array]],
    *,
    kernel: str,
    source: Path,
) -> tuple[Finding, ...]:
    """Return a finding where an operator leaves bytes of its outputs as they are; none elsewhere.

    Args:
        names: of the outputs.
        zeroed: what a run gave whose outputs were zeros before.
        run_poisoned: runs the operator on outputs of other content; called only where an output is
            all zeros, so that a kernel which writes something costs no second run.
        kernel, source: its name and file.
    """
    if not any(array.size and not _bytes(array).any() for array in zeroed):
        return ()
    shares, spans = [], []
    for name, before, after in zip(names, zeroed, run_poisoned(), strict=True):
        first, second = _bytes(before), _bytes(after)
        # A byte that was written is the same in both runs; the others hold what they held.
        kept = np.flatnonzero(second != first)
        if first.any() or not kept.size:
            continue
        elements = np.unique(kept // before.itemsize).size
        share = "all" if elements == before.size else str(elements)
        shares.append(f"{share} of the {before.size} elements of {name}")
        spans.append((int(kept[0]), int(kept[-1]) + 1, name))
    if not shares:
        return ()
    begin, end, name = spans[0]
    return (
        Finding(
            id="INIT-OUTPUT",
            message=f"output never written: {', '.join(shares)}",
            help="copy the results out, those of the last tile too",
            kernel=kernel,
            location=_entry(source, kernel),
            other=None,
            block=0,
            other_block=0,
            sub_core="",
            sub_block=0,
            instruction=0,
            space="GM",
            begin=begin,
            end=end,
            count=1,
            allocation=f"output {name}",
        ),
    )


def _bytes(array: _Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _entry(source: Path, kernel: str) -> Location | None:
    """Return the line that declares the kernel function."""
    try:
        lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    marked = [n for n, line in enumerate(lines, 1) if "__global__" in line]
    named = [n for n in marked if re.search(rf"\b{kernel}(_kernel)?\b", lines[n - 1])]
    lines_found = named or marked
    return Location(source, lines_found[0]) if lines_found else None
