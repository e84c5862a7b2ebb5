"""What a project is compiled against: the emulator's headers and its library."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from opkit import emulator
from opkit.errors import OpkitError, SetupError

__all__ = ["Toolkit"]

_ABI_VERSION = re.compile(r"\bkAbiVersion\s*=\s*(\d+)")


@dataclass(frozen=True)
class Toolkit:
    """The emulator as the compiler sees it."""

    include_dir: Path
    """Holds `kernel_operator.h` and `opkit/`."""
    library: Path | None
    """`libopkit_emulator.so`; None leaves its symbols undefined (tests without the library)."""

    @classmethod
    def installed(cls) -> Toolkit:
        """Return the toolkit of this installation.

        Raises:
            SetupError: the installation lacks headers or library.
        """
        return cls(include_dir=emulator.include_dir(), library=emulator.library_path())

    @property
    def program_start(self) -> Path:
        """The source that hands the options of `opkit run` to the emulator; linked into programs.

        Raises:
            SetupError: the installation lacks it.
        """
        source = self.include_dir.parent / "start" / "program_start.cpp"
        if not source.is_file():
            raise SetupError(
                f"the emulator's {source.name} is not in this installation of opkit",
                help='install it with "pip install ." in the checkout, or "pip install opkit"',
            )
        return source

    @property
    def abi_version(self) -> int:
        """The version that a kernel's table carries: `kAbiVersion` of `opkit/types.h`."""
        return _read_abi_version(self.include_dir / "opkit" / "types.h")


@functools.cache
def _read_abi_version(header: Path) -> int:
    try:
        found = _ABI_VERSION.search(header.read_text(encoding="utf-8"))
    except OSError as err:
        raise OpkitError(f"{header}: cannot read the emulator's ABI version: {err}") from err
    if found is None:
        raise OpkitError(f"{header}: has no kAbiVersion")
    return int(found[1])
