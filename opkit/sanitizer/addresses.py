"""Where in a program's sources a call of the runtime stands, by its debug information."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["resolve_addresses"]

_PLACE = re.compile(r"^(?P<file>.*):(?P<line>\d+)")


def resolve_addresses(
    addresses: Iterable[tuple[Path, int]],
) -> dict[tuple[Path, int], tuple[Path, int]]:
    """Return file and line of each address of a program or library that has debug information.

    Needs the binutils' addr2line, which comes with compilers; without it nothing is resolved.
    """
    tool = shutil.which("addr2line")
    offsets: dict[Path, list[int]] = {}
    for module, offset in dict.fromkeys(addresses):
        offsets.setdefault(module, []).append(offset)
    if tool is None:
        return {}
    places = {}
    for module, wanted in offsets.items():
        argv = [tool, "-e", str(module), *(hex(offset) for offset in wanted)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        for offset, line in zip(wanted, done.stdout.splitlines(), strict=False):
            found = _PLACE.match(line)
            if found is not None and int(found["line"]) > 0:
                places[(module, offset)] = (Path(found["file"]), int(found["line"]))
    return places
