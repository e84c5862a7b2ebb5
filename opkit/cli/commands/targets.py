"""`opkit targets`: the chips that can be emulated."""

from __future__ import annotations

from collections.abc import Sequence

import click

from opkit.chips import DEFAULT_CHIP, Chip, all_chips, find_chip
from opkit.cli.completion import complete_chip
from opkit.cli.console import Console, common_options
from opkit.errors import UsageError

__all__ = ["command"]


PROGRAM_TARGETS = (
    ("ascendc", "on the emulated Ascend910B2, in part on the Ascend310P3; not run on hardware"),
    ("cpp", "on this machine's processor"),
    ("triton", "by Triton's interpreter; not compiled by any Triton, not run on a GPU, MLU or XPU"),
    ("pto", "text; by NumPy and on the emulated Ascend910B2; not run by a PTO toolchain"),
)
"""What `opkit compile` makes of programs, and where it was run."""


@click.command("targets", short_help="List the chips that can be emulated.")
@click.argument("chip", required=False, shell_complete=complete_chip)
@click.option(
    "--guesses",
    is_flag=True,
    help="Of CHIP, only the timing constants that no document and no measurement gives.",
)
@common_options
def command(*, chip: str | None, guesses: bool, console: Console) -> None:
    """List the chips that can be emulated.

    With CHIP, list every number of that chip and the source that it was read from.

    Example: opkit targets Ascend910B2
    """
    if chip is not None:
        found = find_chip(chip)
        _show(found, found.guesses if guesses else tuple(found.numbers), console)
        return
    if guesses:
        raise UsageError("--guesses is about one chip: opkit targets CHIP --guesses")
    chips = all_chips()
    if console.json:
        console.emit_json([_fields(item) for item in chips])
        return
    columns = ("chip", "cores", "UB KiB", "L1 KiB", "L0C KiB", "MHz", "arch", "also called")
    rows = [
        (
            item.name + (" (default)" if item.name == DEFAULT_CHIP else ""),
            _cores(item),
            *(_kib(item, name) for name in ("ub", "l1", "l0c")),
            f"{item.number('clock.mhz'):g}",
            item.npu_arch,
            ", ".join(item.aliases),
        )
        for item in chips
    ]
    console.table(columns, rows, right=("UB KiB", "L1 KiB", "L0C KiB", "MHz"))
    console.table(("opkit compile --target", "verified"), PROGRAM_TARGETS)


def _show(chip: Chip, keys: Sequence[str], console: Console) -> None:
    numbers = {key: chip.numbers[key] for key in keys}
    if console.json:
        console.emit_json({**_fields(chip), "numbers": numbers})
        return
    rows = [(key, f"{entry.value:.12g}", entry.source) for key, entry in numbers.items()]
    console.table(("number", "value", "source"), rows, right=("value",), title=chip.name)


def _fields(chip: Chip) -> dict[str, object]:
    return {
        "name": chip.name,
        "aliases": chip.aliases,
        "default": chip.name == DEFAULT_CHIP,
        "npu_arch": chip.npu_arch,
        "soc_config": chip.soc_config,
        "aic_cores": chip.count("cores.aic"),
        "aiv_cores": chip.count("cores.aiv"),
        "ub_bytes": chip.count("memory.ub_bytes"),
        "l1_bytes": chip.count("memory.l1_bytes"),
        "clock_mhz": chip.number("clock.mhz"),
    }


def _cores(chip: Chip) -> str:
    if chip.count("cores.coupled"):
        vector = chip.count("cores.vector")
        return f"{chip.count('cores.aic')} AI" + (f" + {vector} vector" if vector else "")
    return f"{chip.count('cores.aic')} cube + {chip.count('cores.aiv')} vector"


def _kib(chip: Chip, memory: str) -> str:
    return str(chip.count(f"memory.{memory}_bytes") // 1024)
