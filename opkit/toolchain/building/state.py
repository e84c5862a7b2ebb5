"""What the last build left: enough to see, by looking at file times only, that nothing changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opkit.files import write_aside
from opkit.toolchain.building.digests import FileStat

__all__ = ["BuildState", "UnitState"]

_VERSION = 2


@dataclass(frozen=True)
class UnitState:
    """One unit of the last build."""

    key: str
    """Its cache key: compiler, command and text."""
    dependencies: tuple[str, ...]
    """Absolute paths of what it read; their hashes are in `BuildState.files`."""
    output: FileStat
    """What it made, as it was left."""
    digest: str
    """Hash of what it made."""
    log: str


@dataclass(frozen=True)
class BuildState:
    """All units of the last build by name, and the files that they read."""

    units: Mapping[str, UnitState]
    files: Mapping[str, tuple[FileStat, str]]
    """State and hash by absolute path."""

    @classmethod
    def load(cls, path: Path) -> BuildState:
        """Return what was saved here; an empty state where nothing readable was.

        A state that was copied along with its project names the original's files: it says nothing.
        """
        try:
            document = json.loads(path.read_bytes())
            if document["version"] != _VERSION or document["place"] != _place(path):
                return cls({}, {})
            names = list(document["files"])
            files = {
                name: (FileStat(size, time), digest)
                for name, (size, time, digest) in document["files"].items()
            }
            units = {
                name: UnitState(
                    key=row["key"],
                    dependencies=tuple(names[index] for index in row["dependencies"]),
                    output=FileStat(*row["output"]),
                    digest=row["digest"],
                    log=row["log"],
                )
                for name, row in document["units"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return cls({}, {})
        return cls(units, files)

    def save(self, path: Path) -> None:
        """Write the state, whole or not at all."""
        used = dict.fromkeys(file for unit in self.units.values() for file in unit.dependencies)
        names = [file for file in used if file in self.files]
        position = {name: index for index, name in enumerate(names)}
        units = {
            name: {
                "key": unit.key,
                "dependencies": [position[file] for file in unit.dependencies],
                "output": [unit.output.size_bytes, unit.output.mtime_ns],
                "digest": unit.digest,
                "log": unit.log,
            }
            for name, unit in self.units.items()
            # A file without a trusted hash (just written) is looked at again next time.
            if all(file in position for file in unit.dependencies)
        }
        files = {
            name: [stat.size_bytes, stat.mtime_ns, digest]
            for name in names
            for stat, digest in (self.files[name],)
        }
        document = {"version": _VERSION, "place": _place(path), "units": units, "files": files}
        write_aside(path, json.dumps(document).encode())

    def is_fresh(self, name: str, key: str, output: Path, seen: dict[str, bool]) -> bool:
        """Whether a unit is as the last build left it.

        Args:
            seen: answers by path, shared between the units of a build: each file is looked at once.
        """
        unit = self.units.get(name)
        if unit is None or unit.key != key or FileStat.of(str(output)) != unit.output:
            return False
        for file in unit.dependencies:
            if file not in seen:
                seen[file] = FileStat.of(file) == self.files[file][0]
            if not seen[file]:
                return False
        return True


def _place(path: Path) -> str:
    return str(path.resolve())
