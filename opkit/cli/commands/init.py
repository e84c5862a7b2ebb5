"""`opkit init`: a project from options, without a prototype."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from opkit.cli.commands.gen import command as gen_command
from opkit.cli.console import Console, common_options, write_text
from opkit.cli.options import project_folder_option
from opkit.errors import UsageError

__all__ = ["command"]

_ATTRIBUTE = re.compile(r"(\w+)(?::(\w+))?(?:=(.*))?")
_TENSOR = re.compile(r"(\w+)(?::([\w,]+))?")


@click.command("init", short_help="Write an operator project from options.")
@click.argument("op", metavar="OP")
@project_folder_option()
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME[:TYPES]",
    help="An input, once for each; x by default. TYPES with commas are in place of --type.",
)
@click.option(
    "--formula",
    "formulas",
    multiple=True,
    metavar="[NAME=]TEXT",
    help="An output's formula, once for each output; y by default. Without one, Compute is a"
    " marked gap.",
)
@click.option(
    "--attr",
    "attributes",
    multiple=True,
    metavar="NAME[:TYPE][=VALUE]",
    help="An attribute, once for each; float by default, required without a value.",
)
@click.option(
    "--type",
    "types",
    default="float16,float32",
    show_default=True,
    metavar="TYPES",
    help="Data types, with commas.",
)
@common_options
def command(
    *,
    op: str,
    directory: Path | None,
    inputs: tuple[str, ...],
    formulas: tuple[str, ...],
    attributes: tuple[str, ...],
    types: str,
    console: Console,
) -> None:
    """Write an operator project from options; OP is its name in UpperCamelCase.

    The prototype that it stands for is in the project: edit it and run `opkit gen` there.

    Example: opkit init Swish --formula "x * sigmoid(beta * x)" --attr beta=1.0
    """
    from opkit.schema import parse

    entry: dict[str, object] = {
        "op": op,
        "input_desc": [_tensor(text, types) for text in inputs or ("x",)],
        "output_desc": [
            _output(text, types, index, len(formulas)) for index, text in enumerate(formulas)
        ]
        or [_tensor("y", types)],
    }
    if attributes:
        entry["attr"] = [_attribute(text) for text in attributes]
    text = json.dumps(entry, indent=4) + "\n"
    (spec,) = parse(text, file=Path(f"{op}.json"))
    folder = directory or Path(spec.name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} is there already",
            help="name another folder with -o; opkit gen brings a project up to date",
        )
    folder.mkdir(parents=True, exist_ok=True)
    prototype = folder / f"{spec.name}.json"
    write_text(prototype, text)
    click.get_current_context().invoke(
        gen_command,
        prototype=prototype,
        directory=folder,
        json_output=console.json,
        verbose=console.verbose,
        quiet=console.quiet,
    )


def _tensor(text: str, types: str) -> dict[str, object]:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise UsageError(f'"{text}" is no tensor', help="write x, or x:float16,float32")
    return {"name": match[1], "type": (match[2] or types).split(",")}


def _output(text: str, types: str, index: int, count: int) -> dict[str, object]:
    named = re.fullmatch(r"\s*(\w+)\s*=(?!=)\s*(.+)", text, re.DOTALL)
    name = named[1] if named else "y" if count == 1 else f"y{index}"
    return {**_tensor(name, types), "formula": named[2] if named else text}


def _attribute(text: str) -> dict[str, object]:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise UsageError(f'"{text}" is no attribute', help="write alpha, alpha:int or alpha=1.0")
    row: dict[str, object] = {"name": match[1], "type": match[2] or "float"}
    if match[3] is not None:
        try:
            value = json.loads(match[3])
        except ValueError:
            value = match[3]
        row.update(param_type="optional", default_value=value)
    return row
