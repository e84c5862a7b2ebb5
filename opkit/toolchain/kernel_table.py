"""What a translation unit ends with, so that its shared object exports its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TableEntry", "kernel_table"]


@dataclass(frozen=True)
class TableEntry:
    """One kernel of a table."""

    name: str
    """What launches call it: a function's name, with its namespaces."""
    function: str | None = None
    """As C++ where the name does not say it: an instance of a template."""
    mode: str | None = None
    """Its `opkit::KernelMode` as C++; None: its source says it."""
    tiling_key: int | None = None
    """The only key that it serves; None: any."""
    cast: str = ""
    """C++ that picks the function where others have its name."""


def kernel_table(entries: Sequence[TableEntry]) -> str:
    """Return the table of these kernels.

    Names alone may turn out to be a template's: the table then says so, and has no kernel for them.
    """
    if len(entries) == 1 and entries[0] == TableEntry(entries[0].name):
        return f"OPKIT_KERNEL_TABLE({entries[0].name})\n"
    probes = []
    lines = []
    for number, entry in enumerate(entries):
        if entry == TableEntry(entry.name) and "<" not in entry.name:
            probes.append(f"OPKIT_KERNEL_PROBE({entry.name}, {number})\n")
            lines.append(f"    OPKIT_PROBED({number}),\n")
        else:
            lines.append(f"    {_entry(entry)},\n")
    return (
        f"namespace {{\n{''.join(probes)}"
        f"const ::opkit::KernelEntry opkit_kernel_entries[] = {{\n{''.join(lines)}}};\n"
        "}  // namespace\n"
        "OPKIT_EXPORT_KERNELS(opkit_kernel_entries)\n"
    )


def _entry(entry: TableEntry) -> str:
    function = entry.function or entry.name
    mode = f", {entry.mode}" if entry.mode is not None else ""
    address = f"{entry.cast}(&::{function})" if entry.cast else f"&{function}"
    text = f'::opkit::kernel_entry<{address}>("{function}"{mode})'
    if function != entry.name:
        text = f'::opkit::launched_as({text}, "{entry.name}")'
    return text if entry.tiling_key is None else f"::opkit::with_key({text}, {entry.tiling_key}u)"
