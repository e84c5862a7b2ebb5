"""`opkit gen`: a prototype JSON to an operator project."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from opkit.chips import DEFAULT_CHIP
from opkit.cli.console import Console, common_options
from opkit.cli.options import project_folder_option
from opkit.cli.parts import (
    Existing,
    check_prototype,
    enclosing_project,
    find_existing,
    merged_prototype,
    operator_notes,
    print_prototype,
    require_existing,
)
from opkit.errors import OperatorError, SpecError, UsageError

if TYPE_CHECKING:
    from opkit.schema import OpSpec

__all__ = ["command"]

_TONES = {
    "create": "good",
    "update": "good",
    "merge": "good",
    "remove": "warn",
    "stale": "warn",
    "identical": "quiet",
    "skip": "warn",
    "conflict": "bad",
}


@click.command("gen", short_help="Write an operator project from a prototype JSON.")
@click.argument("named", required=False, type=click.Path(path_type=Path), metavar="[JSON]")
@click.option(
    "-i",
    "--input",
    "prototype",
    default=None,
    type=click.Path(path_type=Path),
    metavar="JSON",
    help="The prototype: one operator or a list of them.",
)
@project_folder_option("-out")
@click.option(
    "-c",
    "--compute-unit",
    "compute_units",
    default=None,
    metavar="UNIT",
    help="The chip, or several with commas; `opkit targets` lists them. ai_core-Ascend910B2 by"
    " default, in an existing project what it has.",
)
@click.option(
    "-f",
    "--framework",
    default=None,
    metavar="NAME",
    help="pytorch, or aclnn for no PyTorch binding. pytorch by default, in an existing project"
    " what it has.",
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
@click.option(
    "-m",
    "--mode",
    default=None,
    type=click.Choice(["0", "1"]),
    help="0: only write a new project. 1: add the operators to the project in DIR. By default a"
    " project of the same name is brought up to date.",
)
@click.option("--check", is_flag=True, help="Check the prototype and write nothing.")
@click.option(
    "--from-opdef",
    "opdef",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="CPP",
    help="Read the prototype back out of a host source; -o names the JSON, else it is printed.",
)
@common_options
def command(
    *,
    named: Path | None,
    prototype: Path | None,
    directory: Path | None,
    compute_units: str | None,
    framework: str | None,
    language: str,
    operator: str | None,
    mode: str | None,
    check: bool,
    opdef: Path | None,
    console: Console,
) -> None:
    """Write an operator project from a prototype JSON.

    Example: opkit gen -i gelu_custom.json -o gelu_custom

    Run it again after editing the prototype: what is new is merged into the files that you
    edited, or put beside them as <file>.new where both changed the same lines. Inside a project,
    `opkit gen` alone does that.
    """
    _check_language(language)
    if named is not None and prototype is not None:
        raise UsageError(
            f"two prototypes are named: {prototype} and {named}", help="name one: -i FILE"
        )
    prototype = prototype or named
    units = _split_units(compute_units)
    if opdef is not None:
        chip = units[0] if units else DEFAULT_CHIP
        print_prototype(opdef, directory, console, chip=chip)
        return
    own = enclosing_project(Path.cwd()) if directory is None else None
    if prototype is None:
        if own is None:
            raise UsageError(
                "there is no prototype",
                help="name one: opkit gen op.json; inside a generated project, its own is taken",
            )
        prototype = own / f"{require_existing(own).name}.json"
    if check:
        check_prototype(prototype, console)
        return
    from opkit import schema
    from opkit.scaffold import DEFAULT_COMPUTE_UNIT, render, write
    from opkit.schema import package_name

    specs = schema.load(prototype)
    text: str | None = schema.prototype_text(prototype)
    if operator is not None and len(specs) > 1:
        # The project keeps what it was made from, not the file's other operators.
        text = None
    if operator is not None:
        specs = (_select(specs, operator, prototype),)
    folder, existing = _target(directory, own, prototype, adds=mode == "1")
    name = specs[0].name if len(specs) == 1 else _project_name(prototype)
    name = existing.name if existing and own else package_name(name)
    folder = folder or Path(name)
    existing = existing or find_existing(folder)
    _check_mode(mode, folder, existing, name)
    replaced = []
    if mode == "1" and existing is not None:
        specs, text = merged_prototype(folder, existing, specs)
        name = existing.name
        replaced = [PurePosixPath(f"{name}.json")]
    framework = framework or (existing and existing.framework) or "pytorch"
    units = units or (existing.compute_units if existing else ()) or (DEFAULT_COMPUTE_UNIT,)
    try:
        tree = render(
            specs,
            name=name,
            prototype=text,
            framework=framework.lower(),
            compute_units=units,
        )
    except SpecError as err:
        raise schema.with_line(err) from err
    statuses = write(tree, folder, replaced=replaced)
    for status in statuses:
        beside = f" (yours is kept; the new text is {status.new_text})" if status.new_text else ""
        console.status(status.action, f"{folder / status.path}{beside}", tone=_TONES[status.action])
    gaps = operator_notes(specs)
    for note in gaps:
        console.status("note", note, tone="warn")
    if console.json:
        console.emit_json(
            {"project": name, "directory": folder, "files": statuses, "notes": list(gaps)}
        )
    conflicts = [status for status in statuses if status.action == "conflict"]
    if conflicts:
        raise OperatorError(
            f"{len(conflicts)} of your edited files differ from what would be generated now",
            help="merge each <file>.new into your file, or delete it to keep yours; then gen again",
        )
    console.result(f'{folder} is ready: "opkit build {folder}" compiles it')


def _target(
    directory: Path | None, own: Path | None, prototype: Path, *, adds: bool
) -> tuple[Path | None, Existing | None]:
    """Return the folder to write and the project in it; (None, None) for a new one.

    Inside a project, its own prototype means that project, and so does -m 1.

    Raises:
        UsageError: another prototype inside a project, without -o: which is meant?
    """
    if own is None:
        return directory, None if directory is None else find_existing(directory)
    existing = require_existing(own)
    if adds or prototype.resolve() == (own / f"{existing.name}.json").resolve():
        return Path(os.path.relpath(own)), existing
    raise UsageError(
        f"this is inside the project {existing.name}, whose prototype is {existing.name}.json",
        help=f"-m 1 adds the operators of {prototype.name} to it;"
        " -o names another folder for a project of their own",
    )


def _split_units(text: str | None) -> tuple[str, ...]:
    return tuple(unit.strip() for unit in (text or "").split(",") if unit.strip())


def _check_mode(mode: str | None, folder: Path, existing: Existing | None, name: str) -> None:
    """Refuse to mix up projects."""
    if mode == "0" and folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty, and -m 0 writes new projects only",
            help="-m 1 adds the operators to the project there; without -m it is updated",
        )
    if mode == "1" and existing is None:
        raise UsageError(
            f"{folder} holds no project that -m 1 could add to",
            help="name its folder with -o, or leave -m out to write a new project",
        )
    if mode is None and existing is not None and existing.name != name:
        raise UsageError(
            f"{folder} holds the project {existing.name}, and this would be {name}",
            help="-m 1 adds the operators to it; -o names another folder",
        )


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
