"""`msopst`: tests of an operator by cases in msOpST's JSON, by `opkit test`.

Other than the vendor's, `run` exits with 1 when a case fails. Source: msOpST user guide
(Ascend/msopgen, tools/msopst), options, case definition file and error codes.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opkit.cli.console import write_text
from opkit.cli.vendor.find import project_of
from opkit.cli.vendor.options import hand_over, idle, refused
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.schema import OpSpec, TensorSpec

__all__ = ["command"]

_SHAPE = (8, 16, 32)
"""Shape of each tensor of a generated case, for the user to edit."""


@click.group("msopst", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Test operators; opkit does it.

    Example: msopst run -i GeluCustom_case.json -soc Ascend910B2 -out result
    """


@command.command("create")
@click.option("-i", "--input", "source", required=True, type=click.Path(path_type=Path))
@click.option("-out", "--output", "folder", type=click.Path(path_type=Path), default=Path())
@refused("-m/--model", "opkit reads no models", help="leave it out: shapes are to be edited")
@idle("-q/--quiet", "nothing is asked", is_flag=True)
def create(source: Path, folder: Path) -> None:
    """Write a case file for the operators that a host source (.cpp) defines."""
    from opkit.toolchain import read_opdefs

    if source.suffix != ".cpp":
        raise UsageError(f"-i {source}: opkit reads operators from their host source (.cpp)")
    if not source.is_file():
        raise UsageError(f"-i {source}: there is no such file")
    specs, notes = read_opdefs(source, chip="Ascend910B2")
    for note in notes:
        click.echo(f"note: {note}", err=True)
    folder.mkdir(parents=True, exist_ok=True)
    for spec in specs:
        path = folder / f"{spec.op}_case_{datetime.datetime.now():%Y%m%d%H%M%S}.json"
        write_text(path, json.dumps(_cases(spec), indent=4) + "\n")
        click.echo(path)


def _cases(spec: OpSpec) -> list[dict[str, Any]]:
    """Return one case a combination of types, with the fields of the user guide."""
    return [
        {
            "case_name": f"Test_{spec.op}_{variant + 1:03d}",
            "op": spec.op,
            "input_desc": [_tensor(item, variant, True) for item in spec.inputs],
            "output_desc": [_tensor(item, variant, False) for item in spec.outputs],
            **({"attr": _attributes(spec)} if spec.attrs else {}),
        }
        for variant in range(spec.variant_count)
    ]


def _tensor(tensor: TensorSpec, variant: int, is_input: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": ["ND"],
        "type": [tensor.dtypes[variant].name],
        "shape": list(_SHAPE),
        "name": tensor.name,
    }
    if is_input:
        fields |= {"data_distribute": ["uniform"], "value_range": [[0.1, 1.0]]}
    return fields


def _attributes(spec: OpSpec) -> list[dict[str, Any]]:
    return [
        {"name": attr.name, "type": str(attr.type), "value": attr.default} for attr in spec.attrs
    ]


@command.command("run")
@click.option("-i", "--input", "cases", required=True, type=click.Path(path_type=Path))
@click.option("-soc", "--soc_version", "soc", required=True, metavar="CHIP")
@click.option("-out", "--output", "folder", type=click.Path(path_type=Path), default=Path())
@click.option("-c", "--case_name", "names", default="all", metavar="NAME,...|all")
@idle("-d/--device_id", "there is one emulated device")
@idle("-err_report/--error_report", "reports of wrong elements are always written")
@refused("-conf/--config_file", "opkit has nothing of msopst.ini to set", help="leave it out")
@refused(
    "-err_thr/--error_threshold",
    "limits stand in the case file",
    help='write "error_threshold": [0.01, 0.05] into the case',
)
def run(cases: Path, soc: str, folder: Path, names: str) -> None:
    """Run the cases on the project that has the operator, and write st_report.json."""
    found = _documents(cases)
    operator = str(found[0].get("op", ""))
    project = project_of(operator, Path.cwd())
    arguments: list[str | Path] = ["test", project, "--op", operator, "--cases", cases, "-c", soc]
    if names != "all":
        wanted = [name.strip() for name in names.split(",")]
        unknown = set(wanted) - {str(case.get("case_name")) for case in found}
        if unknown:
            raise UsageError(f"-c: {cases} has no case {', '.join(sorted(unknown))}")
        arguments += ["-k", " or ".join(wanted)]
    stamp = f"{datetime.datetime.now():%Y%m%d%H%M%S}"
    hand_over(*arguments, "--st-report", folder / stamp)


def _documents(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as err:
        raise UsageError(f"-i {path}: cannot be read: {err.strerror}") from err
    except ValueError as err:
        raise UsageError(f"-i {path}: not JSON: {err}") from err
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise UsageError(f"-i {path}: expected a list of cases")
    return found


@command.command("ascendc_test", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def ascendc_test(arguments: tuple[str, ...]) -> None:
    """Refused: opkit tests operators of projects, and programs by themselves."""
    raise UsageError(
        "msopst ascendc_test writes a program around one kernel, which opkit does not",
        help='"msopst run" tests the operator of a project; "opkit cc" compiles a program',
    )
