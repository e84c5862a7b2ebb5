"""`opkit demo`: one operator the whole way, by the commands that a user would type."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

from opkit.cli.console import Console, common_options, write_text
from opkit.errors import SetupError, UsageError, cannot_write

__all__ = ["command"]

_OPERATOR = "gelu_custom"
_STDERR = 2
_PROTOTYPE = Path(__file__).parent / "data" / f"{_OPERATOR}.json"

_NUMPY_CALL = """\
import numpy as np
import gelu_custom
from opkit.testing import assert_close

x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float16)
y = gelu_custom.gelu_custom(x)

wide = x.astype(np.float64)
golden = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
print("x      ", x[:5])
print("kernel ", y[:5])
print("float64", golden[:5])
print("largest difference in", x.size, "elements:", np.abs(y - golden).max())
assert_close(y, golden)
"""

_TORCH_CALL = """\
import torch
import gelu_custom

x = torch.randn(4096, dtype=torch.float16, requires_grad=True)
y = gelu_custom.gelu_custom(x)
y.sum().backward()

reference = x.detach().double().requires_grad_()
expected = torch.nn.functional.gelu(reference, approximate="tanh")
expected.sum().backward()
torch.testing.assert_close(y.double(), expected, rtol=2e-3, atol=2e-3)
torch.testing.assert_close(x.grad.double(), reference.grad, rtol=2e-3, atol=2e-3)
print("torch  ", y[:3].tolist())
print("x.grad ", x.grad[:3].tolist())
"""


@dataclass(frozen=True)
class Step:
    """One command of the tour."""

    shown: tuple[str, ...]
    """As a user types it."""
    argv: tuple[str, ...]
    """As it is run: by this Python, whatever PATH says."""
    script: str = ""
    """What it reads from stdin."""


def _opkit(*arguments: str) -> Step:
    from opkit.toolchain import OPKIT_COMMAND

    return Step(("opkit", *arguments), (*OPKIT_COMMAND, *arguments))


def _install(folder: str) -> Step:
    argv = ("-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", folder)
    return Step(("python", *argv), (sys.executable, *argv))


def _script(text: str) -> Step:
    from opkit.toolchain import WITHOUT_FOLDER

    run_stdin = 'exec(compile(sys.stdin.read(), "<stdin>", "exec"))'
    return Step(("python", "-"), (sys.executable, "-c", WITHOUT_FOLDER + run_stdin), text)


def steps(directory: Path, *, with_torch: bool) -> tuple[Step, ...]:
    """Return the commands, from the prototype that lies in `directory` to calls from Python."""
    # A bare name would be a package of the index to pip.
    folder = str(directory) if directory.is_absolute() else f"./{directory}"
    tour = [
        _opkit("gen", "-i", str(directory / _PROTOTYPE.name), "-o", str(directory)),
        _opkit("build", str(directory)),
        _opkit("test", str(directory)),
        _opkit("profile", str(directory)),
        _install(folder),
        _script(_NUMPY_CALL),
    ]
    if with_torch:
        tour.append(_script(_TORCH_CALL))
    return tuple(tour)


@click.command("demo", short_help="Take one operator the whole way, command by command.")
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@common_options
def command(*, directory: Path | None, console: Console) -> None:
    """Take one operator the whole way, command by command.

    Writes the prototype of GELU into DIR (./gelu_custom by default), then generates, builds, tests
    and profiles the project, installs it with pip into this Python and calls it. Every command is
    printed before it runs; what is left is a project to edit.

    Example: opkit demo my_first_operator
    """
    target = directory or Path(_OPERATOR)
    _claim(target)
    if importlib.util.find_spec("pip") is None:
        raise SetupError(
            f"{sys.executable} has no pip, which the demo installs the operator with",
            help=f"{sys.executable} -m ensurepip",
        )
    console.status("demo", f"in {target.absolute()}")
    write_text(target / _PROTOTYPE.name, _PROTOTYPE.read_text(encoding="utf-8"))
    console.status("wrote", str(target / _PROTOTYPE.name))
    done = []
    for step in steps(target, with_torch=importlib.util.find_spec("torch") is not None):
        start = time.monotonic()
        code = _run(step, console)
        seconds = time.monotonic() - start
        done.append({"command": step.shown, "exit_code": code, "seconds": seconds})
        if code:
            console.status("failed", f"{' '.join(step.shown)}: exit code {code}")
            break
    failed = done[-1]["exit_code"]
    if console.json:
        console.emit_json({"directory": target.absolute(), "ok": not failed, "steps": done})
    if failed:
        raise click.exceptions.Exit(int(str(failed)))
    _say_what_next(target, console)


def _claim(directory: Path) -> None:
    """Make the folder, or accept it if it is empty or an earlier demo's.

    Raises:
        UsageError: it holds something else.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file", help="name a folder: opkit demo DIR")
    prototype = directory / _PROTOTYPE.name
    ours = prototype.is_file() and prototype.read_bytes() == _PROTOTYPE.read_bytes()
    if directory.is_dir() and any(directory.iterdir()) and not ours:
        raise UsageError(
            f"{directory} is not empty, and not a demo's folder",
            help="name another folder: opkit demo DIR",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise cannot_write(directory, err) from err


def _run(step: Step, console: Console) -> int:
    """Print a command, run it, and return its exit code; under --json its output is on stderr."""
    console.gap()
    console.command_line(step.shown, always=True, stdin=step.script)
    done = subprocess.run(
        list(step.argv),
        input=step.script,
        stdout=_STDERR if console.json else None,
        text=True,
        check=False,
    )
    # A signal's number is negative; a shell reports it as 128 and more.
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def _say_what_next(directory: Path, console: Console) -> None:
    console.result(
        f"""
{_OPERATOR} is installed in this Python, and its project is yours to edit:
  {directory}/{_OPERATOR}.json            the prototype; change the formula and run opkit gen again
  {directory}/op_kernel/{_OPERATOR}.cpp   the kernel; edit it, then opkit build and opkit test
  {directory}/README.md                   what was generated, and every command"""
    )
