"""Launches that were recorded once, kept on disk: to fit again nothing needs to run again."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opkit import emulator

_HERE = Path(__file__).parent
_LEVEL = 1
"""Of zlib: what is kept is read more often than it is small."""


@dataclass(frozen=True)
class Traces:
    """A folder of recorded launches, or none: then each is recorded when it is asked for."""

    folder: Path | None = None

    def launch(self, what: str, record: Callable[[], Any], files: Iterable[Path] = ()) -> Any:
        """Return the launch that `record` gives, from the folder where it has it.

        Args:
            what: tells it from others; with it count the `files`, the emulator but for its timing
                model, and these programs.
        """
        if self.folder is None:
            return record()
        import opkit.emulator._emulator as native

        digest = hashlib.sha256(f"{what}\n{_of_programs()}\n{_of(files)}".encode())
        path = self.folder / f"{digest.hexdigest()[:32]}.trace"
        if path.exists():
            return native.KeptLaunch.unpack(zlib.decompress(path.read_bytes()))
        launch = record()
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".tmp")
        aside.write_bytes(zlib.compress(launch.pack(), _LEVEL))
        aside.replace(path)
        return launch


@cache
def _of_programs() -> str:
    """Return what all recorded instructions depend on."""
    root = emulator.include_dir().parent
    own = [path for path in root.rglob("*") if path.suffix in {".h", ".cpp", ".inc"}]
    observed = root / "src" / "observe"
    digest = _of([*(path for path in own if observed not in path.parents), *_HERE.glob("*.cpp")])
    numbers = "".join(
        line
        for chip in sorted((root / "chips").glob("*.json"))
        for line in chip.read_text(encoding="utf-8").splitlines()
        if not line.strip().startswith(('"timing.', '"accuracy.'))
    )
    return digest + hashlib.sha256(numbers.encode()).hexdigest()


def _of(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
