"""`bisheng`: the compiler of sources with kernel launches, by `opkit cc`."""

from __future__ import annotations

import click

from opkit.cli.vendor.options import hand_over

__all__ = ["command"]


@click.command(
    "bisheng",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Compile sources with kernel launches; the flags are those of opkit cc.

    Example: bisheng --npu-arch=dav-2201 add.asc -o add
    """
    if words in (("--version",), ("-v",), ("-dumpversion",)):
        from opkit import __version__
        from opkit.toolchain import find_compiler

        click.echo(f"bisheng of opkit {__version__}, on {' '.join(find_compiler().argv)}")
        return
    hand_over("cc", *words)
