"""The architectures that tests go over, and which pairs Cast has on each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opkit import emulator
from opkit.chips import all_chips

CHIPS = {chip.npu_arch: chip.name for chip in reversed(all_chips())}
"""A chip of each architecture, by its name, such as `dav-2201`."""
_FOLDER = emulator.include_dir() / "opkit" / "isa"


def cast_rows(architecture: str) -> Iterator[tuple[str, str, str]]:
    """Yield source, destination and the words of the roundings; not the pairs that it lacks."""
    others = {
        (source, destination): modes
        for source, destination, modes in re.findall(
            r"^ARCH_CAST\((\w+), (\w+), (.+)\)$",
            (_FOLDER / f"arch_{architecture.removeprefix('dav-')}.inc").read_text(),
            re.MULTILINE,
        )
    }
    for source, destination, modes in re.findall(
        r"^CAST\((\w+), +(\w+), +(.+)\)$", (_FOLDER / "vec_cast.inc").read_text(), re.MULTILINE
    ):
        here = others.get((source, destination), modes)
        if here != "NO_ROUND":
            yield source, destination, here
