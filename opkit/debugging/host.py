"""The tiling function of a project in the compiler's own debugger."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.errors import BuildError, SetupError, UsageError

if TYPE_CHECKING:
    from opkit.testing import Case
    from opkit.toolchain import Project

__all__ = ["host_debugger", "run_host_case", "tiling_function"]

_CASE = "case.pickle"
_TILING = re.compile(r"^[^\n/]*\b(\w+)\s*\(\s*gert::TilingContext\s*\*", re.MULTILINE)


def tiling_function(project: Project, kernel: str) -> tuple[Path, int]:
    """Return where an operator's tiling function begins: file and line.

    Raises:
        UsageError: the project's host code has none.
    """
    sources = project.sources("op_host")
    # A file of the operator's name before others.
    for path in sorted(sources, key=lambda path: not path.stem.startswith(kernel)):
        text = path.read_text(encoding="utf-8", errors="replace")
        found = _TILING.search(text)
        if found is not None:
            body = text.find("{", found.end())
            return path, text.count("\n", 0, body if body >= 0 else found.start()) + 2
    where = ", ".join(str(path) for path in sources) or f"{project.root / 'op_host'}"
    raise UsageError(
        f"{kernel}: no function in {where} takes a gert::TilingContext",
        help="--op names another operator",
    )


def host_debugger(project: Project, folder: Path, case: Case) -> list[str]:
    """Return the command that stops at the tiling function of one case.

    Args:
        folder: the project's artifact folder; a copy beside it gets host code that can be stepped
            through, and the case.
    Raises:
        SetupError: gdb is not installed.
        BuildError: the host code does not compile.
        UsageError: there is no tiling function.
    """
    file, line = tiling_function(project, case.kernel)
    gdb = shutil.which("gdb")
    if gdb is None:
        raise SetupError(
            "the tiling function is debugged in gdb, which is not installed", help="install gdb"
        )
    copy = folder.with_name(f"{folder.name}-host-debug")
    _compile(project, folder, copy)
    (copy / _CASE).write_bytes(pickle.dumps(case))
    code = f"from opkit.debugging import run_host_case as r; r({str(copy)!r})"
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


def _compile(project: Project, folder: Path, copy: Path) -> None:
    """Copy an artifact folder, its host library without optimisation and with line numbers."""
    from opkit.toolchain import Toolkit, find_compiler, host_argv

    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    sources = project.sources("op_host")
    library = copy / "libop_host.so"
    argv = host_argv(find_compiler(), Toolkit.installed(), source=sources[0], output=library)
    at = argv.index(str(sources[0]))
    tree = project.tree
    options = (*tree.host_options, *tree.own_host_options) if tree is not None else ()
    argv[at : at + 1] = ["-g", *options, *map(str, sources)]
    done = subprocess.run(argv, cwd=project.root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(
            f"the host code of {project.name} does not compile for gdb:\n{done.stderr}"
        )


def run_host_case(folder: str) -> None:
    """Run the case that `host_debugger` has put into an artifact folder; what gdb starts."""
    from opkit import runtime
    from opkit.testing import make_inputs

    found: Case = pickle.loads((Path(folder) / _CASE).read_bytes())
    runtime.configure(threads=1)
    inputs = make_inputs(found)
    names = [dtype.name for dtype in found.dtypes[: len(inputs)]]
    runtime.open(folder).run(found.op, inputs, dict(found.attrs), dtypes=names)
