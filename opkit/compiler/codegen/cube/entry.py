"""The entry point of a kernel that multiplies: which class which kind of core runs, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..text import Text

__all__ = ["Prologue", "Work", "write_entry"]

_TOGETHER, _COMPUTED = 7, 8
"""Flags: all vector cores have computed what is multiplied; a cube core's vector cores know it."""


@dataclass(frozen=True)
class Work:
    """A class, and what its Init takes before its tiling data."""

    class_name: str
    arguments: Sequence[str]


@dataclass(frozen=True)
class Prologue:
    """What vector cores compute first, all of it, before anything is multiplied."""

    class_name: str
    struct: str
    arguments: Sequence[str]
    """The kernel's addresses that its class takes."""


def write_entry(
    out: Text,
    name: str,
    struct: str,
    parameters: Sequence[str],
    cube: Work,
    vector: Work | None = None,
    prologues: Sequence[Prologue] = (),
) -> None:
    """Write a kernel's entry point.

    Each prologue comes with its tiling data and the number of its cores, `before0` and `cores0` for
    the first, before the product's own tiling data.

    Args:
        out: where to.
        name: the kernel's.
        struct: the type of the product's tiling data.
        parameters: the names of the kernel's addresses.
        cube: what cube cores do.
        vector: what vector cores do with what these hand over.
        prologues: what vector cores do first.
    """
    is_mixed = vector is not None or bool(prologues)
    given = [f"GM_ADDR {each}" for each in parameters]
    for index, prologue in enumerate(prologues):
        given += [f"{prologue.struct} before{index}", f"uint32_t cores{index}"]
    mode = "__mix__(1, 2)" if is_mixed else "__cube__"
    out(f'extern "C" __global__ {mode} void {name}({", ".join(given)}, {struct} tiling)')
    out("{")
    if not is_mixed:
        _run(out, cube, "tiling")
        out("}")
        return
    out("if ASCEND_IS_AIC {")
    if prologues:
        out(f"CrossCoreWaitFlag<2, PIPE_MTE2>({_COMPUTED});")
    _run(out, cube, "tiling")
    out("} else {")
    for index, prologue in enumerate(prologues):
        out(f"if (GetBlockIdx() < cores{index}) {{")
        _run(out, Work(prologue.class_name, prologue.arguments), f"before{index}")
        out("}")
        if vector is not None or index + 1 < len(prologues):
            out("// What follows takes the memory from which this one may still be copying.")
            for event in ("MTE3_MTE2", "MTE3_V"):
                out(f"SetFlag<HardEvent::{event}>(EVENT_ID0);")
                out(f"WaitFlag<HardEvent::{event}>(EVENT_ID0);")
    if prologues:
        out("// Any cube core may read what any vector core has computed.")
        out(f"CrossCoreSetFlag<0, PIPE_MTE3>({_TOGETHER});")
        out(f"CrossCoreWaitFlag<0, PIPE_MTE2>({_TOGETHER});")
        out(f"CrossCoreSetFlag<2, PIPE_MTE2>({_COMPUTED});")
    if vector is not None:
        _run(out, vector, "tiling")
    out("}")
    out("}")


def _run(out: Text, work: Work, tiling: str) -> None:
    out(f"{work.class_name} op;")
    out(f"op.Init({', '.join((*work.arguments, tiling))});")
    out("op.Process();")
