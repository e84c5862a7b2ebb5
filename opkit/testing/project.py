"""All cases of a project, with the shapes that its golden.py asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.errors import UsageError
from opkit.schema import OpSpec, nearest
from opkit.testing.cases import Case, default_cases
from opkit.testing.golden import Golden

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = ["project_cases"]


def project_cases(
    project: Project,
    *,
    golden: Golden | None,
    op: str | None = None,
    seed: int = 0,
    edge_values: bool = False,
) -> tuple[Case, ...]:
    """Return the default cases of a project's operators, or of one of them.

    Args:
        golden: the project's references, which may have rules for input shapes.
        op: an operator's OpDef or snake_case name.
        seed, edge_values: as `default_cases`.
    Raises:
        UsageError: the project has no such operator.
    """
    return tuple(
        case
        for spec in _chosen(project, op)
        for case in default_cases(
            spec,
            seed=seed,
            shape_rule=golden.shape_rule(spec) if golden is not None else None,
            edge_values=edge_values,
        )
    )


def _chosen(project: Project, op: str | None) -> tuple[OpSpec, ...]:
    if op is None:
        return project.operators
    chosen = tuple(spec for spec in project.operators if op in (spec.op, spec.name))
    if chosen:
        return chosen
    names = [spec.name for spec in project.operators]
    near = nearest(op, names)
    raise UsageError(
        f'{project.name} has no operator "{op}"',
        help=f'did you mean "{near}"?' if near else "it has " + ", ".join(names),
    )
