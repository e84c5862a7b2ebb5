"""`opkit build`: compile a project."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import cache_dir_option, chip_option, jobs_option, project_argument
from opkit.errors import SetupError, UsageError

if TYPE_CHECKING:
    from opkit.toolchain import BuildEvent

__all__ = ["command"]

# A fresh unit is no news; it is counted in the last line.
_SILENT = {"fresh"}


@click.command("build", short_help="Compile a project's kernels, host code and bindings.")
@project_argument()
@chip_option("build for")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the artifact folder goes; build/opkit in the project by default.",
)
@click.option("--wheel", is_flag=True, help="Also build the project's wheel, into its dist/.")
@click.option(
    "--library",
    type=click.Choice(["static", "shared"]),
    help="Also make a library of the aclnn functions that programs link, with a CMake package,"
    " into build/opkit.library: it carries the kernels inside.",
)
@click.option(
    "--library-file", metavar="NAME", help="The shared library's name; cust_opapi by default."
)
@click.option(
    "--device",
    is_flag=True,
    help="Build PyTorch's device npu instead of a project, ahead of its first use.",
)
@jobs_option("Compilers")
@cache_dir_option("")
@click.option("--clean", is_flag=True, help="Delete the artifact folder first.")
@common_options
def command(
    *,
    project: Path | None,
    chip: str,
    into: Path | None,
    wheel: bool,
    library: str | None,
    library_file: str | None,
    device: bool,
    jobs: int | None,
    cache_dir: Path | None,
    clean: bool,
    console: Console,
) -> None:
    """Compile a project's kernels, host code and bindings.

    PROJECT is its folder, or any folder inside it; the working directory by default. What has not
    changed is not compiled again. CMake's npu_op_package gives the NAME.operators that it wrote.
    The folder of a library of operators, or of a part of it, builds each of them.
    --device compiles what `import torch` needs for tensors on npu, once for each torch.

    Example: opkit build gelu_custom
    """
    if device:
        _build_device(console, has_more=bool(project or into or wheel or library or clean))
        return
    from opkit.cli.parts import report_library
    from opkit.toolchain import (
        build,
        build_library,
        build_wheel,
        clean_output,
        load_project,
        operators_below,
    )

    if library_file is not None and library is None:
        raise UsageError("--library-file names a library", help="give --library shared, too")
    folders = operators_below(project or Path.cwd())
    if folders:
        if wheel or library is not None or clean:
            raise UsageError(
                "--wheel, --library and --clean are for one project",
                help="give the folder of one operator",
            )
        if not report_library(
            console, folders, chip=chip, into=into, jobs=jobs, cache_dir=cache_dir
        ):
            raise click.exceptions.Exit(1)
        return
    found = load_project(project)
    if clean:
        clean_output(found, out=into)
    artifact = build(
        found,
        chip=chip,
        out=into,
        jobs=jobs,
        cache_dir=cache_dir,
        verbose=console.command_line,
        progress=lambda event: _report(console, event),
        warn=console.warn,
    )
    console.diagnostics(artifact.warnings)
    linkable = None
    if library is not None:
        linkable = build_library(
            artifact, library, file_name=library_file, verbose=console.command_line
        )
    made = build_wheel(found, verbose=console.command_line) if wheel else None
    console.status(
        "built",
        f"{found.name} for {artifact.chip.name} in {artifact.seconds:.1f} s: "
        f"{artifact.compiled} compiled, {artifact.cached} cached, {artifact.fresh} fresh",
    )
    if console.json:
        console.emit_json(
            {
                "project": found.name,
                "chip": artifact.chip.name,
                "artifact": artifact.folder,
                "manifest": artifact.manifest,
                "wheel": made,
                "library": linkable,
                "compiled": artifact.compiled,
                "cached": artifact.cached,
                "fresh": artifact.fresh,
                "skipped": [{"file": name, "reason": why} for name, why in artifact.skipped],
                "warnings": artifact.warnings,
                "seconds": artifact.seconds,
            }
        )
        return
    console.result(str(made or linkable or artifact.folder))


def _build_device(console: Console, *, has_more: bool) -> None:
    """Build the device's libraries where they are not there yet.

    Raises:
        UsageError: something else is asked for with it.
        SetupError: torch is missing, or what it needs to compile.
    """
    if has_more:
        raise UsageError(
            "--device builds no project", help="give it alone; the project by a command of its own"
        )
    if importlib.util.find_spec("torch") is None:
        raise SetupError("--device needs torch, which is not installed", help="pip install torch")
    from opkit import torch_npu

    was_there = torch_npu.is_built()
    backend, kernels = torch_npu.libraries()
    console.status("built", "npu, by an earlier call" if was_there else "npu")
    if console.json:
        console.emit_json({"device": backend, "kernels": kernels, "was_built": was_there})
        return
    console.result(str(backend))


def _report(console: Console, event: BuildEvent) -> None:
    if event.status == "wait":
        console.status("wait", f"another build has {event.name}", tone="warn")
    elif event.status == "skip":
        console.status("skip", f"{event.name} ({event.detail})")
    elif event.status not in _SILENT:
        tone = "quiet" if event.status == "cached" else None
        console.status(event.status, f"{event.name} ({event.seconds:.1f} s)", tone=tone)
