"""Choosing and building what `opkit test` and `opkit debug` run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opkit.cli.console import Console
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.testing import Case, Golden
    from opkit.toolchain import Artifact, Project

__all__ = ["build_project", "case_pool", "choose_cases"]


def case_pool(
    project: Project,
    golden: Golden | None,
    op: str | None,
    files: tuple[Path, ...],
    seed: int,
    edge_values: bool,
    pairwise: bool,
    names: tuple[str, ...],
    reference: str = "",
) -> tuple[Case, ...]:
    """Return the cases to choose from; those of every kind where cases are named."""
    from opkit.testing import file_cases, project_cases

    if files:
        return tuple(
            case
            for file in files
            for case in file_cases(project, file, golden=golden, op=op, seed=seed)
        )
    edges = edge_values or bool(names)
    cases = project_cases(
        project,
        golden=golden,
        op=op,
        seed=seed,
        edge_values=edges,
        pairwise=pairwise,
        reference=reference,
        others=bool(names) and project.tree is not None,
    )
    if not names or pairwise or project.tree is not None:
        return cases
    more = project_cases(
        project, golden=golden, op=op, seed=seed, pairwise=True, reference=reference
    )
    return tuple({case.name: case for case in (*more, *cases)}.values())


def choose_cases(
    project: Project,
    pool: tuple[Case, ...],
    expression: str | None,
    names: tuple[str, ...],
    last_failed: Path | None,
) -> tuple[Case, ...]:
    """Return the cases of a pool that are named, match, or failed last time.

    Args:
        last_failed: the file that says which failed, where those are wanted.
    Raises:
        UsageError: there is no such case.
    """
    from opkit.schema import nearest
    from opkit.testing import failed_last, select_cases

    cases = pool
    first = pool[0].name if pool else "none"
    for name in names:
        if name not in {case.name for case in pool}:
            near = nearest(name, [case.name for case in pool])
            raise UsageError(
                f'{project.name} has no case "{name}"',
                help=f'did you mean "{near}"?' if near else f"names look like {first}",
            )
    if names:
        cases = tuple(case for case in pool if case.name in names)
    if last_failed is not None:
        cases = failed_last(last_failed, cases)
    chosen = cases if expression is None else select_cases(cases, expression)
    if not chosen:
        example = cases[0].name if cases else "none"
        raise UsageError(
            f"no case of {project.name} matches -k {expression!r}",
            help=f"names look like {example}",
        )
    return chosen


def build_project(
    project: Project, chip: str, console: Console, *, into: Path | None = None
) -> Artifact:
    """Build a project where needed and say so; `into` is the artifact folder."""
    from opkit.toolchain import build

    artifact = build(project, chip=chip, out=into, verbose=console.command_line, warn=console.warn)
    made = artifact.compiled + artifact.cached
    if made:
        console.status("built", f"{project.name}, {made} files in {artifact.seconds:.1f} s")
    return artifact
