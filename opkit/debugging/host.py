"""The tiling function of a project in the compiler's own debugger."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from opkit.errors import BuildError, SetupError, UsageError

__all__ = ["host_debugger", "run_host_case", "tiling_function"]


def tiling_function(root: Path, kernel: str) -> tuple[Path, int]:
    """Return where an operator's tiling function begins: file and line.

    Raises:
        UsageError: its op_host has none.
    """
    path = root / "op_host" / f"{kernel}.cpp"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise UsageError(f"{kernel} has no {path}", help="--op names another operator") from None
    found = re.search(r"^[^\n/]*\b(\w+)\s*\(\s*gert::TilingContext\s*\*", text, re.MULTILINE)
    if found is None:
        raise UsageError(f"{path}: no function takes a gert::TilingContext")
    body = text.find("{", found.end())
    return path, text.count("\n", 0, body if body >= 0 else found.start()) + 2


def host_debugger(root: Path, folder: Path, case: str, kernel: str) -> list[str]:
    """Return the command that stops at the tiling function of one case.

    Args:
        root: the project's folder.
        folder: its artifact folder; a copy beside it gets host code that can be stepped through.
    Raises:
        SetupError: gdb is not installed.
        BuildError: the host code does not compile.
        UsageError: there is no tiling function.
    """
    file, line = tiling_function(root, kernel)
    gdb = shutil.which("gdb")
    if gdb is None:
        raise SetupError(
            "the tiling function is debugged in gdb, which is not installed", help="install gdb"
        )
    copy = folder.with_name(f"{folder.name}-host-debug")
    _compile(root, folder, copy)
    code = (
        f"from opkit.debugging import run_host_case as r; r({str(root)!r}, {str(copy)!r}, {case!r})"
    )
    return [
        gdb,
        "-q",
        "-ex",
        "set breakpoint pending on",
        # What the emulator itself catches, and makes a fault of.
        "-ex",
        "handle SIGSEGV SIGFPE SIGILL nostop noprint pass",
        "-ex",
        f"break {file.name}:{line}",
        "-ex",
        "run",
        "--args",
        sys.executable,
        "-c",
        code,
    ]


def _compile(root: Path, folder: Path, copy: Path) -> None:
    """Copy an artifact folder, its host library without optimisation and with line numbers."""
    from opkit.toolchain import Toolkit, find_compiler, host_argv

    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    sources = sorted((root / "op_host").glob("*.cpp"))
    library = copy / "libop_host.so"
    argv = host_argv(find_compiler(), Toolkit.installed(), source=sources[0], output=library)
    at = argv.index(str(sources[0]))
    argv[at : at + 1] = ["-g", *map(str, sources)]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{root / 'op_host'} does not compile for gdb:\n{done.stderr}")


def run_host_case(root: str, folder: str, case: str) -> None:
    """Run one case of a project with the artifacts of a folder; what gdb starts."""
    from opkit import runtime
    from opkit.testing import load_golden, make_inputs, project_cases
    from opkit.toolchain import load_project

    project = load_project(Path(root))
    golden = load_golden(project.package_dir / "golden.py")
    pools = (
        project_cases(project, golden=golden, op=None, seed=0, edge_values=True, pairwise=pairwise)
        for pairwise in (False, True)
    )
    found = next(one for pool in pools for one in pool if one.name == case)
    runtime.configure(threads=1)
    inputs = make_inputs(found)
    names = [dtype.name for dtype in found.dtypes[: len(inputs)]]
    runtime.open(folder).run(found.op, inputs, dict(found.attrs), dtypes=names)
