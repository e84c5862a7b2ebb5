"""What operators show as a whole: outputs that nothing writes, inputs that something does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.sanitizer.finding import Finding, Location
from opkit.toolchain import scan_kernels

__all__ = ["allocations", "unwritten_outputs", "written_inputs"]

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
        run_poisoned: runs the operator on outputs of other content; called only where an output has
            an element that is zero, so that most kernels cost no second run.
        kernel, source: its name and file.
    """
    if all(_elements(array).any(axis=1).all() for array in zeroed):
        return ()
    shares, spans = [], []
    for name, before, after in zip(names, zeroed, run_poisoned(), strict=True):
        first, second = _elements(before), _elements(after)
        # What was written is the same in both runs; the others hold what they held.
        kept = np.flatnonzero((second != first).any(axis=1) & ~first.any(axis=1))
        if not kept.size:
            continue
        share = "all" if kept.size == before.size else str(kept.size)
        shares.append(f"{share} of the {before.size} elements of {name}")
        size = before.itemsize
        spans.append((int(kept[0]) * size, (int(kept[-1]) + 1) * size, name))
    if not shares:
        return ()
    begin, end, name = spans[0]
    found = _of_launch(
        "INIT-OUTPUT",
        f"output never written: {', '.join(shares)}",
        "copy the results out, those of the last tile too",
        kernel=kernel,
        source=source,
    )
    return (replace(found, begin=begin, end=end, allocation=f"output {name}"),)


def written_inputs(names: Sequence[str], *, kernel: str, source: Path) -> tuple[Finding, ...]:
    """Return a finding for each input that a launch has changed and that is no output.

    Args:
        names: of these inputs.
        kernel, source: its name and file.
    """
    return tuple(
        replace(
            _of_launch(
                "MEM-INPUT",
                f"the kernel writes to its input {name}, which the operator does not give back",
                f"write to an output, or give the operator an output of the name {name}",
                kernel=kernel,
                source=source,
            ),
            allocation=f"input {name}",
        )
        for name in names
    )


def allocations(names: Sequence[str], *, kernel: str, source: Path) -> tuple[Finding, ...]:
    """Return a finding where a kernel takes memory as programs do.

    Args:
        names: of the functions by which it does.
        kernel, source: its name and file.
    """
    if not names:
        return ()
    return (
        _of_launch(
            "API-MEMORY",
            f"the kernel takes memory of this machine, by {', '.join(names)}",
            "use LocalTensor, arrays of constant size, the workspace; C++ containers allocate",
            kernel=kernel,
            source=source,
        ),
    )


def _of_launch(id: str, message: str, help: str, *, kernel: str, source: Path) -> Finding:
    """Return a finding of a whole launch, at the kernel's entry."""
    return Finding(
        id=id,
        message=message,
        help=help,
        kernel=kernel,
        location=_entry(source, kernel),
        other=None,
        block=0,
        other_block=0,
        sub_core="",
        sub_block=0,
        instruction=0,
        space="GM",
        begin=0,
        end=0,
        count=1,
        allocation="",
    )


def _elements(array: _Array) -> NDArray[np.uint8]:
    """Return the bytes of each element, a row each."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, array.itemsize)


def _entry(source: Path, kernel: str) -> Location | None:
    """Return the line of the kernel function, or of the source's first one."""
    try:
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = scan_kernels(text)
    named = [one for one in found if one.name in (kernel, f"{kernel}_kernel")] or found
    return Location(source, text.count("\n", 0, named[0].name_start) + 1) if named else None
