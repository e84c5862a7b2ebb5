"""`msopgen`: operator projects from a prototype, by `opkit gen`.

Exit codes are those of the tool's own documents. Source: msOpGen user guide (Ascend/msopgen),
options and error codes.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from opkit.chips import find_chip
from opkit.cli.vendor.options import call_opkit, hand_over, refused
from opkit.errors import UsageError

__all__ = ["command"]

FRAMEWORK_ERROR = 11
OUTPUT_ERROR = 12
INPUT_ERROR = 13
UNIT_ERROR = 14
MODE_ERROR = 15
OPERATOR_ERROR = 16
JSON_ERROR = 107
WRITE_ERROR = 109
DATA_ERROR = 112

_WITHOUT_PLUGIN = frozenset(("tf", "tensorflow", "ms", "mindspore", "onnx"))
_CORES = frozenset(("ai_core", "aicore", "vector_core", "vectorcore"))


@click.group("msopgen", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Write operator projects; opkit does it.

    Example: msopgen gen -i gelu_custom.json -c ai_core-Ascend910B -lan cpp -out gelu_custom_op
    """


class MsopgenError(UsageError):
    """A wrong argument, with the exit code that the vendor's tool gives it."""

    def __init__(self, code: int, message: str, *, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.exit_code = code


@command.command("gen")
@click.option("-i", "--input", "prototype", required=True, type=click.Path(path_type=Path))
@click.option("-f", "--framework", metavar="NAME", help="aclnn, pytorch, tf, ms or onnx.")
@click.option("-c", "--compute_unit", "unit", required=True, metavar="CORE-CHIP")
@click.option("-lan", "-t", "--language", default="cpp", help="cpp; opkit has no TBE.")
@click.option("-out", "-o", "--output", "folder", type=click.Path(path_type=Path))
@click.option("-m", "--mode", default=None, metavar="0|1", help="0: a new project; 1: add to one.")
@click.option("-op", "--operator", metavar="NAME", help="Only this operator of the file.")
@click.option("-q", "--quiet", is_flag=True)
def gen(
    prototype: Path,
    framework: str | None,
    unit: str,
    language: str,
    folder: Path | None,
    mode: str | None,
    operator: str | None,
    quiet: bool,
) -> None:
    """Write an operator project from a prototype JSON."""
    _check_input(prototype)
    arguments = ["gen", "-i", str(prototype), "-c", ",".join(_chips(unit)), "-lan", language]
    chosen = _framework(framework)
    if chosen is not None:
        arguments += ["-f", chosen]
    if mode is not None:
        if mode not in ("0", "1"):
            raise MsopgenError(MODE_ERROR, f"-m {mode}: expected 0 or 1")
        arguments += ["-m", mode]
    if operator is not None:
        _check_operator(prototype, operator)
        arguments += ["-op", operator]
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise MsopgenError(OUTPUT_ERROR, f"-out {folder}: is no folder")
        arguments += ["-o", str(folder)]
    if quiet:
        arguments.append("-q")
    code = call_opkit(*arguments)
    raise click.exceptions.Exit({2: DATA_ERROR, 3: WRITE_ERROR}.get(code, code))


def _check_input(prototype: Path) -> None:
    if prototype.suffix.lower() in (".xlsx", ".xls", ".txt"):
        raise MsopgenError(
            INPUT_ERROR,
            f"-i {prototype}: opkit reads JSON, neither tables nor TensorFlow IR",
            help="write the operator as JSON: docs/operators.md",
        )
    if not prototype.is_file():
        raise MsopgenError(INPUT_ERROR, f"-i {prototype}: there is no such file")
    try:
        json.loads(prototype.read_text("utf-8-sig"))
    except (UnicodeDecodeError, ValueError) as err:
        raise MsopgenError(JSON_ERROR, f"-i {prototype}: not JSON: {err}") from err


def _check_operator(prototype: Path, operator: str) -> None:
    found = json.loads(prototype.read_text("utf-8-sig"))
    names = [str(row.get("op")) for row in (found if isinstance(found, list) else [found])]
    if operator not in names:
        raise MsopgenError(
            OPERATOR_ERROR, f"-op {operator}: {prototype} has {', '.join(names)}", help=None
        )


def _chips(unit: str) -> list[str]:
    """Return the units in opkit's spelling; AI CPU and unknown chips are errors."""
    units = [part.strip() for part in unit.split(",") if part.strip()]
    for part in units:
        core, _, chip = part.partition("-")
        if core.lower() in ("aicpu", "ai_cpu"):
            raise MsopgenError(UNIT_ERROR, f"-c {part}: opkit has no AI CPU, only AI cores")
        if core.lower() not in _CORES or not chip:
            raise MsopgenError(UNIT_ERROR, f"-c {part}: expected ai_core-CHIP or vector_core-CHIP")
        try:
            find_chip(chip)
        except UsageError as err:
            raise MsopgenError(UNIT_ERROR, f"-c {part}: {err.message}", help=err.help) from err
    if not units:
        raise MsopgenError(UNIT_ERROR, "-c is empty: expected ai_core-CHIP")
    return units


def _framework(name: str | None) -> str | None:
    """Return the framework for `opkit gen`; plug-ins of others are not written, which is said."""
    if name is None or name.lower() in ("pytorch", "aclnn"):
        return name.lower() if name else None
    if name.lower() in _WITHOUT_PLUGIN:
        click.echo(f"note: -f {name}: opkit writes the operator and no plug-in", err=True)
        return "aclnn"
    raise MsopgenError(FRAMEWORK_ERROR, f"-f {name}: expected aclnn, pytorch, tf, ms or onnx")


@command.command("compile")
@click.option("-i", "--input", "project", required=True, type=click.Path(path_type=Path))
@refused("-c/--cann", "the emulator is the only toolkit here", help="leave it out")
@click.option("-q", "--quiet", is_flag=True)
def compile_project(project: Path, quiet: bool) -> None:
    """Compile a project; `opkit build` does it."""
    hand_over("build", project, *(["-q"] if quiet else []))


@command.command("sim", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def sim(arguments: tuple[str, ...]) -> None:
    """Refused: it reads dumps of the vendor's simulator."""
    raise UsageError(
        "msopgen sim reads dumps of the vendor's simulator, which opkit does not write",
        help='"msprof op simulator APPLICATION" writes instruction and line times',
    )
