"""What editors read of a project's build: by which options each source is compiled.

Apart from the commands of a build because clangd looks at a source by itself, and knows clang's
options only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from opkit.toolchain.building.unit import CompileUnit, is_for_linker
from opkit.toolchain.compiler import Compiler

__all__ = ["COMPILE_COMMANDS", "compile_commands"]

COMPILE_COMMANDS = "compile_commands.json"
"""The file, in the folder that `.clangd` of a generated project names."""

# Those of our own commands that clang does not have, and what only a link reads.
_LEFT_OUT = {"-s", "-fno-gnu-unique", "-fno-diagnostics-show-caret"}


def compile_commands(units: Iterable[CompileUnit], *, compiler: Compiler, root: Path) -> str:
    """Return a compilation database of the user's sources.

    A kernel has one entry, whatever the number of its variants: that of the first data types.
    """
    entries: dict[Path, dict[str, object]] = {}
    for unit in units:
        if unit.source in entries or not unit.source.is_file():
            continue
        passes = unit.core_passes[0][1] if unit.core_passes else ()
        flags = [
            flag
            for flag in (*unit.flags, *passes)
            if flag not in _LEFT_OUT and not is_for_linker(flag)
        ]
        entries[unit.source] = {
            "directory": str(root),
            "file": str(unit.source),
            "arguments": [*compiler.argv, *flags, "-x", "c++", "-c", str(unit.source)],
        }
    return json.dumps(list(entries.values()), indent=1) + "\n"
