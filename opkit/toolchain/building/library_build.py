"""All operators of a library, one after the other: what builds, and why the rest does not."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, Chip
from opkit.errors import BuildError, OpkitError, UsageError
from opkit.toolchain.building.project_build import Artifact, BuildEvent, build
from opkit.toolchain.projects import find_library, find_operators, load_project

__all__ = [
    "OperatorBuild",
    "build_operators",
    "is_operator_for",
    "operators_below",
    "operators_for",
]


@dataclass(frozen=True)
class OperatorBuild:
    """What became of one operator."""

    folder: Path
    """The operator's folder."""
    artifact: Artifact | None
    """None where it does not build."""
    notes: tuple[str, ...]
    """What was left out of it, such as data types that the chip lacks."""
    error: OpkitError | None
    seconds: float

    @property
    def cause(self) -> str:
        """Why it does not build: the first error of the compiler, or what else was said."""
        if isinstance(self.error, BuildError):
            for found in self.error.diagnostics:
                if found.severity == "error":
                    place = f"{found.file.name}:{found.line}: " if found.line else ""
                    return f"{place}{found.message}"
        return str(self.error or "")


def operators_below(folder: Path) -> tuple[Path, ...]:
    """Return the operators below a folder of a library; none where it is in one operator, or none.

    Args:
        folder: a library's root, or one of its categories.
    """
    start = Path(os.path.normpath(folder.absolute()))
    library = find_library(start)
    if library is None:
        return ()
    operators = find_operators(library)
    if any(start.is_relative_to(operator) for operator in operators):
        return ()
    return tuple(operator for operator in operators if operator.is_relative_to(start))


def operators_for(folder: Path, *, soc_config: str) -> tuple[Path, ...]:
    """Return the operators below a folder of a library whose OpDefs name a family of chips.

    Args:
        soc_config: the family, such as `ascend910b`.
    """
    return tuple(op for op in operators_below(folder) if is_operator_for(op, soc_config=soc_config))


def is_operator_for(operator: Path, *, soc_config: str) -> bool:
    """Return whether the OpDef of an operator of a library names a family of chips."""
    named = re.compile(rf'"{re.escape(soc_config)}"')
    return any(
        named.search(file.read_text(encoding="utf-8", errors="replace"))
        for file in (operator / "op_host").glob("*_def*.cpp")
    )


def build_operators(
    folders: tuple[Path, ...],
    *,
    chip: Chip | str = DEFAULT_CHIP,
    into: Path | None = None,
    jobs: int | None = None,
    cache_dir: Path | None = None,
    progress: Callable[[BuildEvent], None] | None = None,
) -> Iterator[OperatorBuild]:
    """Build operators one after the other; one that does not build stops no other.

    Args:
        folders: the operators', as `operators_below` returns them.
        into: where the artifact folders go, by the operators' names; each operator's own
            build/opkit when None.
        chip, jobs, cache_dir, progress: as `build` takes them.
    Raises:
        UsageError: two operators of one name would go into one folder, or there is none.
    """
    if not folders:
        raise UsageError("there is no operator to build")
    names = [folder.name for folder in folders]
    twice = sorted({name for name in names if names.count(name) > 1})
    if into is not None and twice:
        raise UsageError(
            f"several operators are called {twice[0]}",
            help="build the library's parts into folders of their own, or leave --into away",
        )
    for folder in folders:
        begin = time.monotonic()
        notes: list[str] = []
        artifact, error = None, None
        try:
            artifact = build(
                load_project(folder),
                chip=chip,
                out=None if into is None else into / folder.name,
                jobs=jobs,
                cache_dir=cache_dir,
                progress=progress,
                warn=notes.append,
            )
        except OpkitError as err:
            error = err
        yield OperatorBuild(folder, artifact, tuple(notes), error, time.monotonic() - begin)
