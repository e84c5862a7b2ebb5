"""What checks look for, whatever is run under them."""

from __future__ import annotations

from dataclasses import dataclass

from opkit.sanitizer.suppressions import Suppressions

__all__ = ["CheckSettings"]


@dataclass(frozen=True)
class CheckSettings:
    """What `check_cases`, `check_program` and `check_script` have in common."""

    tools: tuple[str, ...]
    """Names out of `opkit.sanitizer.TOOLS`."""
    auto_sync: bool = True
    """Whether the compiler orders scalar accesses on vector cores, its default."""
    block: int | None = None
    """Only findings of this block."""
    kernel: str | None = None
    """Only findings of kernels of this name; `*` and `?` match anything."""
    witness: bool = False
    """Run launches with races again, in the order that loses."""
    padding: bool = False
    """Also reads of what rounds a tensor of global memory up to 32 bytes."""
    allow_raw_writes: bool = False
    """Outputs may change through raw pointers, which is MEM-RAW otherwise."""
    suppressions: Suppressions | None = None
    """What is not to be reported; see `read_suppressions`."""
