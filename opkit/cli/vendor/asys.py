"""`asys`: what this machine has, and what a report of a fault needs, by `opkit doctor`."""

from __future__ import annotations

import contextlib
import datetime
import io
import shutil
from pathlib import Path

import click

from opkit.cli.vendor.options import call_opkit, hand_over, idle
from opkit.errors import UsageError, cannot_write

__all__ = ["command"]


@click.group("asys", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look at this machine; opkit does it.

    Example: asys collect --output=report
    """


@command.command("health")
@idle("-d", "all devices are this machine")
def health() -> None:
    """Check what opkit needs: exit code 3 where something is missing."""
    hand_over("doctor")


@command.command("diagnose")
@idle("-d", "all devices are this machine")
@idle("-r", "opkit looks at everything that it needs")
def diagnose() -> None:
    """Check what opkit needs: exit code 3 where something is missing."""
    hand_over("doctor")


@command.command("info")
@click.option("-r", "kind", type=click.Choice(["status", "software", "hardware"]), default="status")
@idle("-d", "all devices are this machine")
def info(kind: str) -> None:
    """Print devices (status), what is installed (software), or the chips (hardware)."""
    if kind == "status":
        from opkit.cli.vendor.npu_smi import overview

        click.echo(overview())
        return
    hand_over("doctor" if kind == "software" else "targets")


@command.command("collect")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), default=Path())
@idle("--task_dir", "opkit collects its own log")
@idle("--tar", "the folder is left as it is")
def collect(output: Path) -> None:
    """Put the log and what doctor says into one folder, asys_output_TIME."""
    from opkit.log import log_folder

    folder = output / f"asys_output_{datetime.datetime.now():%Y%m%d%H%M%S}"
    text = io.StringIO()
    try:
        folder.mkdir(parents=True)
        with contextlib.redirect_stdout(text):
            call_opkit("doctor")
        (folder / "doctor.txt").write_text(text.getvalue(), encoding="utf-8")
        if log_folder().is_dir():
            shutil.copytree(log_folder(), folder / "log")
    except FileExistsError as err:
        raise UsageError(f"{folder} is there already", help="run it again in a second") from err
    except OSError as err:
        raise cannot_write(folder, err) from err
    click.echo(folder)
