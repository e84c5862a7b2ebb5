"""`msadvisor`: what to change first, from a report of `opkit profile` or a prototype."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from opkit.cli.vendor.options import call_opkit, idle
from opkit.errors import UsageError

__all__ = ["command"]


@click.command("msadvisor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--model",
    "-d",
    "--data",
    "model",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="A report of opkit profile --json, an operator's prototype JSON, or a project's folder.",
)
@idle("-c/--cmd", "opkit advises on operators, model and system alike from their launches")
def command(model: Path) -> None:
    """Say what to change first in an operator, with the gain that the model gives it.

    Example: msadvisor --model=./model.json
    """
    if model.is_dir():
        _advise_project(model)
        return
    document = _read(model)
    if isinstance(document, dict) and "advice" in document and "task_us" in document:
        _show(document)
        return
    operators = document if isinstance(document, list) else [document]
    if operators and all(isinstance(row, dict) and "op" in row for row in operators):
        _advise_prototype(model)
        return
    raise UsageError(
        f"{model}: neither a report of opkit profile nor a prototype of an operator",
        help='"opkit profile PROJECT --json > model.json" writes a report; opkit reads no models of'
        " other tools",
    )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as err:
        raise UsageError(f"{path}: cannot be read: {err.strerror}") from err
    except ValueError as err:
        raise UsageError(f"{path}: not JSON: {err}") from err


def _show(report: dict[str, Any]) -> None:
    from opkit.profiling import time_text

    head = time_text(report["task_us"], report.get("band_percent"))
    click.echo(f"{report['kernel']}: {head} on {report['chip']}, bound by {report['bound_by']}")
    for number, advice in enumerate(report["advice"], 1):
        place = f" at {advice['where']}" if advice["where"] else ""
        gain = f"{time_text(advice['gain_us'])} ({advice['gain_percent']:.0f} %)"
        click.echo(f"  {number}. {advice['pattern']}{place}: {gain}")
        click.echo(f"     {advice['finding']}; {advice['change']}")
    if not report["advice"]:
        click.echo("  nothing that the model knows would save more than 2 %")


def _advise_project(folder: Path) -> None:
    raise click.exceptions.Exit(call_opkit("profile", folder))


def _advise_prototype(prototype: Path) -> None:
    """Write the project to a scratch folder, build it there and profile it."""
    with tempfile.TemporaryDirectory(prefix="opkit-msadvisor-") as scratch:
        folder = Path(scratch) / "project"
        code = call_opkit("gen", "-q", "-i", prototype, "-o", folder)
        if code == 0:
            code = call_opkit("profile", folder)
    raise click.exceptions.Exit(code)
