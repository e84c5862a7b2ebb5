"""`opkit doctor`: what this machine has and lacks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import cache_dir_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opkit.toolchain import Check

__all__ = ["command"]


@click.command("doctor", short_help="Check this machine for what opkit needs.")
@cache_dir_option(" to look at")
@click.option(
    "--fix",
    is_flag=True,
    help="Install the Python packages that are missing, by pip, build PyTorch's device npu where"
    " torch is there, and check again. A compiler and torch are not installed: their fix lines say"
    " how.",
)
@common_options
def command(*, cache_dir: Path | None, fix: bool, console: Console) -> None:
    """Check this machine for what opkit needs.

    Exits with 3 if something is missing that opkit cannot work without.

    Example: opkit doctor
    """
    from opkit.errors import SetupError
    from opkit.toolchain import check_machine, install_missing

    checks = check_machine(cache_dir=cache_dir)
    if fix and any(check.package and not check.ok for check in checks):
        install_missing(checks, verbose=console.command_line)
        checks = check_machine(cache_dir=cache_dir)
    checks = (*checks, *_device(checks, fix=fix))
    missing = [check for check in checks if check.needed and not check.ok]
    if console.json:
        console.emit_json({"ok": not missing, "checks": checks})
        click.get_current_context().exit(SetupError.exit_code if missing else 0)
    for check in checks:
        verb = "ok" if check.ok else ("missing" if check.needed else "optional")
        console.result(f"{verb:>10}  {check.name:<18}{check.detail}")
        if not check.ok and check.fix:
            console.result(f"{'':>12}{'':<18}fix: {check.fix}")
    if missing:
        names = ", ".join(check.name for check in missing)
        raise SetupError(f"opkit cannot work here yet: {names}", help="see the fix lines above")


def _device(checks: Sequence[Check], *, fix: bool) -> list[Check]:
    """Whether PyTorch's device npu is built; with `fix` it is, where all that it needs is there."""
    if not any(check.name == "torch" and check.ok for check in checks):
        return []
    from opkit import torch_npu
    from opkit.toolchain import Check

    try:
        if fix and not torch_npu.is_built() and all(c.ok or not c.needed for c in checks):
            torch_npu.libraries()
        is_there = torch_npu.is_built()
    except (ImportError, OSError) as error:  # a torch that does not load
        return [Check("npu", False, False, f"torch does not load: {error}", fix="reinstall torch")]
    detail = "built for this torch" if is_there else "not built: the first tensor on npu waits"
    return [Check("npu", is_there, False, detail, fix="opkit build --device")]
