"""Finding the project that has an operator, where the vendor's tools look into an installation."""

from __future__ import annotations

from pathlib import Path

from opkit.cli.parts import enclosing_project
from opkit.errors import OpkitError, UsageError

__all__ = ["project_of"]

_DEPTH = ("*", "*/*")


def project_of(operator: str, start: Path) -> Path:
    """Return the folder of the project with an operator: the one around `start`, or below it.

    Args:
        operator: the name of its OpDef, its kernel or, where there are none of these, its project.
    Raises:
        UsageError: there is none.
    """
    from opkit.toolchain import load_project

    around = enclosing_project(start)
    below = [folder.parent for depth in _DEPTH for folder in start.glob(f"{depth}/pyproject.toml")]
    for folder in ([around] if around else []) + sorted(below):
        try:
            project = load_project(folder)
        except OpkitError:
            continue  # some other Python package
        if any(operator in (spec.op, spec.name) for spec in project.operators):
            return folder
    raise UsageError(
        f'there is no project with the operator "{operator}" here or below',
        help="change into its folder, or into the one that it lies in",
    )
