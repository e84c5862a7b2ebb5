"""The device's library, made once for each torch and kept in the cache.

It is C++ against PyTorch's headers. The kernels, which are Ascend C and know nothing of torch, are
compiled where opkit is installed. "import torch" imports this module, so what only a build needs is
imported by it.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

import torch

from opkit import emulator, kernels, log
from opkit.errors import SetupError
from opkit.folders import cache_folder

if TYPE_CHECKING:
    from opkit.toolchain import Compiler

__all__ = ["is_built", "kernel_library", "libraries"]

_SOURCES = Path(__file__).parent / "csrc"
_KERNELS = kernels.folder()
_PACKAGE = Path(__file__).parents[1]
_FORMULA_SOURCES = (
    "compiler/frontends/aten/*.py",
    "compiler/ops/composites.py",
    "compiler/ops/exponentials.py",
    "torch_npu/formulas.py",
)
_UNITS = 2
# Collecting garbage takes a tenth of the time of a unit, and such memory is there for two of them.
_GCC_PARAMETERS = ("--param=ggc-min-expand=10000", "--param=ggc-min-heapsize=2000000")
# Checked in a process of its own: a library that PyTorch does not take can end the process.
_SMOKE_TEST = """
import ctypes, sys, types, torch
torch._register_device_module("privateuseone", types.ModuleType("npu"))
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2])
library.opkit_npu_start(1)
x = torch.ones(2, 3, device="privateuseone:0")
assert (x.cpu() + 1).sum().item() == 12
"""


def is_built() -> bool:
    """Whether the device's library for this torch lies in the cache."""
    return _backend_path().is_file()


def kernel_library() -> Path:
    """Return the library of the device's kernels.

    Raises:
        SetupError: this installation lacks it.
    """
    return emulator.device_kernels_path()


def libraries() -> tuple[Path, Path]:
    """Return the device's library for this torch, and that of its kernels.

    The first is built where it is not there yet, its units side by side, with a line of progress.
    A build that was ended goes on from the objects that it left.

    Raises:
        SetupError: there is no compiler, or it does not compile.
    """
    backend = _backend_path()
    if not backend.is_file():
        from opkit.toolchain import locked

        folder = backend.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise SetupError(
                f"{folder}: cannot be made: {err.strerror}",
                help="set XDG_CACHE_HOME to a folder of yours",
            ) from err
        with locked(folder / "build.lock", waiting=_say_waiting):
            if not backend.is_file():
                _build(_planned(backend))
    return backend, kernel_library()


def _say_waiting() -> None:
    sys.stderr.write("opkit: another process compiles the npu device: waiting for it\n")


@dataclass(frozen=True)
class _Library:
    """How it is made: its objects, each with the command that makes it, and how it is linked."""

    target: Path
    objects: Mapping[Path, Sequence[str]]
    link: Sequence[str]
    test: Callable[[Path], Sequence[str]]
    """The command that tries it."""

    @property
    def folder(self) -> Path:
        return self.target.with_suffix(".parts")


def _build(library: _Library) -> None:
    """Compile what is not compiled yet, then link."""
    begin = time.monotonic()
    waiting = [
        (command, f"{path.stem} does not compile")
        for path, command in library.objects.items()
        if not path.is_file()
    ]
    total = len(library.objects)
    what = f"compiling the npu device for torch {torch.__version__}, once"
    sys.stderr.write(f"opkit: {what}: {len(waiting)} of {total} files to do ...")
    sys.stderr.flush()
    log.info("TORCH", what, folder=str(library.folder.parent))
    try:
        _run_together(waiting)
        made = library.folder / "library.so"
        _run_together([([*library.link, "-o", str(made)], "the library cannot be linked")])
        failed = "the npu device was built, and PyTorch does not take it"
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        _run_together([(library.test(made), failed)], environment)
        made.replace(library.target)
        shutil.rmtree(library.folder, ignore_errors=True)
    except BaseException:
        sys.stderr.write(" failed\n")
        raise
    sys.stderr.write(f" done in {time.monotonic() - begin:.0f} s\n")


def _cache() -> Path:
    return cache_folder() / "npu"


@cache
def _backend_path() -> Path:
    parts = [torch.__version__, sys.implementation.cache_tag or "", str(emulator.library_path())]
    parts += _contents(_SOURCES, _SOURCES.glob("*/*"))
    parts += _contents(_KERNELS, [*_KERNELS.glob("*.h"), *_KERNELS.glob("*.inc")])
    # What the device's formulas take from the compiler.
    parts += _contents(_PACKAGE, (p for name in _FORMULA_SOURCES for p in _PACKAGE.glob(name)))
    parts += _contents(emulator.include_dir(), (emulator.include_dir() / "opkit").glob("*.h"))
    return _cache() / f"device-{_digest(parts)}.so"


def _contents(root: Path, paths: Iterable[Path]) -> list[str]:
    """Return the names of files under a folder, each with a digest of what it says.

    Their times would do for less, and build anew after every installation and checkout.
    """
    found = ((path.relative_to(root).as_posix(), path) for path in paths if path.is_file())
    return [
        f"{name}:{hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in sorted(found)
    ]


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _planned(target: Path) -> _Library:
    from opkit.toolchain import find_compiler
    from opkit.torch_npu.formulas import formulas_text, special_formulas_text

    root = Path(torch.__file__).parent
    # Without this definition some headers of ATen bring the declarations of all its operators.
    flags = ["-O1", "-std=c++20", "-fPIC", "-fvisibility=hidden", "-w", "-DAT_PER_OPERATOR_HEADERS"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    flags += ["-isystem", str(root / "include"), "-I", str(emulator.include_dir())]
    folder = target.with_suffix(".parts")
    flags += ["-I", str(_SOURCES), "-I", str(_KERNELS), "-I", str(folder)]
    library = emulator.library_path()
    link = [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-ltorch_cpu", "-lc10"]
    link += [str(library), f"-Wl,-rpath,{library.parent}"]
    folder.mkdir(exist_ok=True)
    (folder / "formulas.inc").write_text(formulas_text(), encoding="utf-8")
    (folder / "special_formulas.inc").write_text(special_formulas_text(), encoding="utf-8")

    def test(made: Path) -> Sequence[str]:
        return [sys.executable, "-c", _SMOKE_TEST, str(library), str(made)]

    compiler = find_compiler()
    objects = _objects(folder, _units(_SOURCES), compiler, flags)
    link = [*compiler.argv, "-shared", "-s", *map(str, objects), *link]
    return _Library(target, objects, link, test)


def _units(folder: Path) -> list[list[Path]]:
    """Return the C++ of a folder as translation units of about the same size.

    Each file alone takes five seconds to read PyTorch's headers and one or two for what it says
    itself. How many units there are does not depend on the machine: what compiles on one does on
    all, though the sources of a unit share their unnamed namespaces.
    """
    units: list[list[Path]] = [[] for _ in range(_UNITS)]
    sizes = [0] * _UNITS
    for size, path in sorted(((p.stat().st_size, p) for p in folder.glob("*/*.cpp")), reverse=True):
        smallest = sizes.index(min(sizes))
        units[smallest].append(path)
        sizes[smallest] += size
    return [sorted(unit) for unit in units if unit]


def _objects(
    folder: Path, units: Sequence[Sequence[Path]], compiler: Compiler, flags: Sequence[str]
) -> dict[Path, Sequence[str]]:
    """Return the objects of translation units, each with the command that makes it."""
    argv = compiler.argv
    extra = _GCC_PARAMETERS if compiler.family == "gcc" else ()
    launcher = [found] if (found := shutil.which("ccache")) and "ccache" not in argv[0] else []
    objects: dict[Path, Sequence[str]] = {}
    for *before, source in units:
        made = folder / f"{source.stem}.o"
        included = [word for path in before for word in ("-include", str(path))]
        command = [*launcher, *argv, *extra, *flags, *included, "-c", str(source)]
        # The object has its name when it is whole: whoever ends the build leaves no half of one.
        objects[made] = ["/bin/sh", "-c", '"$@" -o "$0.$$" && mv "$0.$$" "$0"', str(made), *command]
    return objects


def _run_together(
    commands: Sequence[tuple[Sequence[str], str]], environment: dict[str, str] | None = None
) -> None:
    """Run commands side by side, each with what is said where it fails."""
    left = list(commands)
    running: dict[int, tuple[subprocess.Popen[bytes], IO[str], str]] = {}
    said: IO[str]
    with ExitStack() as stack:
        while left or running:
            while left and len(running) < (os.cpu_count() or 1):
                command, failed = left.pop(0)
                said = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
                process = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=said, env=environment
                )
                stack.callback(process.kill)
                handle = os.pidfd_open(process.pid)
                stack.callback(os.close, handle)
                running[handle] = process, said, failed
            for handle in select.select(list(running), [], [])[0]:
                process, said, failed = running.pop(handle)
                if process.wait() != 0:
                    said.seek(0)
                    raise SetupError(
                        f"{failed}:\n{said.read().strip()[-4000:]}",
                        help='"opkit doctor" tells what this machine lacks',
                    )
