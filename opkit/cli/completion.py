"""What a shell completes: chips, classes of findings, precision standards, names of cases.

`eval "$(_OPKIT_COMPLETE=bash_source opkit)"` turns it on in bash; `zsh_source` and `fish_source` in
those. Whatever cannot be completed, such as the cases of a broken project, is completed as nothing.
"""

from __future__ import annotations

from pathlib import Path

import click

from opkit.errors import OpkitError

__all__ = ["complete_case", "complete_chip", "complete_class", "complete_standard"]


def complete_chip(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names and other names of the chips."""
    from opkit.chips import all_chips

    names = [name for chip in all_chips() for name in (chip.name, *chip.aliases)]
    return _starting(names, incomplete)


def complete_class(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the classes of findings."""
    from opkit.sanitizer import CLASSES

    return _starting([row.id for row in CLASSES], incomplete)


def complete_standard(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the precision standards."""
    from opkit.testing import STANDARDS

    return _starting([*STANDARDS, "double"], incomplete)


def complete_case(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the cases of the project that the command line names so far, or of this folder."""
    from opkit.testing import load_golden, project_cases
    from opkit.toolchain import load_project

    # The word before an option that still lacks its value is not yet taken for what it is.
    given = context.params.get("project") or next(iter(context.args), None)
    try:
        project = load_project(Path(given) if given is not None else None)
        golden = load_golden(project.package_dir / "golden.py")
        cases = project_cases(project, golden=golden, edge_values=True)
    except OpkitError:
        return []
    return _starting([case.name for case in cases], incomplete)


def _starting(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]
