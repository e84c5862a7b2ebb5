"""`opkit gen`: a prototype JSON to an operator project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options
from opkit.errors import OperatorError, SpecError, UsageError

if TYPE_CHECKING:
    from opkit.schema import OpSpec

__all__ = ["command"]

_TONES = {
    "create": "good",
    "update": "good",
    "identical": "quiet",
    "skip": "warn",
    "conflict": "bad",
}


@click.command("gen", short_help="Write an operator project from a prototype JSON.")
@click.option(
    "-i",
    "--input",
    "prototype",
    required=True,
    type=click.Path(path_type=Path),
    metavar="JSON",
    help="The prototype: one operator or a list of them.",
)
@click.option(
    "-o",
    "-out",
    "--output",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The project's folder; the operator's name in the working directory by default.",
)
@click.option(
    "-c",
    "--compute-unit",
    "compute_units",
    default="ai_core-Ascend910B2",
    show_default=True,
    metavar="UNIT",
    help="The chip, or several with commas; `opkit targets` lists them.",
)
@click.option(
    "-f",
    "--framework",
    default="pytorch",
    show_default=True,
    metavar="NAME",
    help="pytorch, or aclnn for no PyTorch binding.",
)
@click.option(
    "-lan",
    "--language",
    default="cpp",
    show_default=True,
    metavar="NAME",
    help="The kernel's language; cpp is Ascend C.",
)
@click.option(
    "-op",
    "--op",
    "operator",
    default=None,
    metavar="NAME",
    help="Only this operator of the file, by its `op` or its snake_case name.",
)
@common_options
def command(
    *,
    prototype: Path,
    directory: Path | None,
    compute_units: str,
    framework: str,
    language: str,
    operator: str | None,
    console: Console,
) -> None:
    """Write an operator project from a prototype JSON.

    Example: opkit gen -i gelu_custom.json -o gelu_custom

    Run it again after editing the prototype: files that you edited are left alone, and their
    new text is put beside them as <file>.new.
    """
    _check_language(language)
    from opkit import schema
    from opkit.scaffold import render, write

    specs = schema.load(prototype)
    text: str | None = prototype.read_text(encoding="utf-8-sig")
    if operator is not None and len(specs) > 1:
        # The project keeps what it was made from, not the file's other operators.
        text = None
    if operator is not None:
        specs = (_select(specs, operator, prototype),)
    name = specs[0].name if len(specs) == 1 else _project_name(prototype)
    try:
        tree = render(
            specs,
            name=name,
            prototype=text,
            framework=framework.lower(),
            compute_units=tuple(unit.strip() for unit in compute_units.split(",") if unit.strip()),
        )
    except SpecError as err:
        raise schema.with_line(err) from err
    folder = directory or Path(name)
    statuses = write(tree, folder)
    for status in statuses:
        beside = f" (yours is kept; the new text is {status.new_text})" if status.new_text else ""
        console.status(status.action, f"{folder / status.path}{beside}", tone=_TONES[status.action])
    if console.json:
        console.emit_json({"project": name, "directory": folder, "files": statuses})
    conflicts = [status for status in statuses if status.action == "conflict"]
    if conflicts:
        raise OperatorError(
            f"{len(conflicts)} of your edited files differ from what would be generated now",
            help="merge each <file>.new into your file, or delete it to keep yours; then gen again",
        )
    console.result(f'{folder} is ready: "opkit build {folder}" compiles it')


def _check_language(language: str) -> None:
    if language.lower() == "cpp":
        return
    if language.lower() == "py":
        raise UsageError(
            "-lan py asks for a TBE operator in Python, which opkit does not generate",
            help="use -lan cpp: kernels are Ascend C",
        )
    raise UsageError(f'-lan "{language}" is not a kernel language', help="use -lan cpp")


def _select(specs: tuple[OpSpec, ...], operator: str, prototype: Path) -> OpSpec:
    from opkit.schema import nearest

    for spec in specs:
        if operator in (spec.op, spec.name):
            return spec
    names = [spec.op for spec in specs]
    near = nearest(operator, names)
    raise UsageError(
        f'{prototype}: there is no operator "{operator}"',
        help=f'did you mean "{near}"?' if near else f"it has {', '.join(names)}",
    )


def _project_name(prototype: Path) -> str:
    """Return the package name for several operators: the file's own."""
    name = prototype.stem.replace("-", "_")
    if not name.isidentifier():
        raise UsageError(
            f'{prototype}: its name "{prototype.stem}" has to name a Python package',
            help="rename the file to letters, digits and _; or pick one operator with --op",
        )
    return name
