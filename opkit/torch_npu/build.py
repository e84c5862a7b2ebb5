"""The device's two libraries, made once and kept in the cache.

One is C++ against PyTorch's headers, for one release of torch; the other holds the kernels, which
are Ascend C and know nothing of torch. "import torch" imports this module, so what only a build
needs is imported by it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import torch

from opkit import emulator, kernels, log
from opkit.errors import SetupError
from opkit.folders import cache_folder

__all__ = ["backend_library", "is_built", "kernel_library", "kernels_are_built"]

_SOURCES = Path(__file__).parent / "csrc"
_KERNELS = kernels.folder()
_UNITS = 2
_OPTIMISE = {"vector_program.cpp": "-O2"}
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


def backend_library() -> Path:
    """Return the device's library for this torch, built where it is not there yet.

    Raises:
        SetupError: there is no compiler, or it does not compile.
    """
    target = _backend_path()
    if target.is_file():
        return target
    with _made_once(
        target, "building opkit's npu device for this torch (once, about half a minute)"
    ):
        if not target.is_file():
            _build_backend(target)
    return target


def kernels_are_built() -> bool:
    """Whether the library of the kernels lies in the cache."""
    return _kernel_path().is_file()


def kernel_library() -> Path:
    """Return the library of the device's kernels, built where it is not there yet.

    Raises:
        SetupError: there is no compiler, or it does not compile.
    """
    target = _kernel_path()
    if target.is_file():
        return target
    with _made_once(target, "building the npu device's kernels (once)"):
        if not target.is_file():
            _build_kernels(target)
    return target


def _kernel_path() -> Path:
    return _cache() / f"kernels-{_kernel_key()}.so"


def _cache() -> Path:
    return cache_folder() / "npu"


@cache
def _backend_path() -> Path:
    parts = [torch.__version__, sys.implementation.cache_tag or "", str(emulator.library_path())]
    parts += _contents(_SOURCES, _SOURCES.glob("*"))
    parts += _contents(_KERNELS, _KERNELS.glob("*.h"))
    parts += _contents(emulator.include_dir(), (emulator.include_dir() / "opkit").glob("*.h"))
    return _cache() / f"device-{_digest(parts)}.so"


@cache
def _kernel_key() -> str:
    from opkit.toolchain import compiler_choice

    headers = emulator.include_dir() / "opkit"
    parts = _contents(_KERNELS, _KERNELS.glob("*.*"))
    parts += _contents(headers, [*headers.rglob("*.h"), *headers.rglob("*.inc")])
    return _digest([*parts, str(emulator.library_path()), *compiler_choice()])


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


def _made_once(target: Path, what: str) -> _Announced:
    return _Announced(target, what)


class _Announced:
    """A lock on one file of the cache, and a line of progress for whoever makes it."""

    def __init__(self, target: Path, what: str) -> None:
        self._target = target
        self._what = what

    def __enter__(self) -> None:
        try:
            self._target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise SetupError(
                f"{self._target.parent}: cannot be made: {err.strerror}",
                help="set XDG_CACHE_HOME to a folder of yours",
            ) from err
        from opkit.toolchain import locked

        sys.stderr.write(f"opkit: {self._what}\n")
        log.info("TORCH", self._what, file=str(self._target))
        self._lock = locked(self._target.with_suffix(".lock"), waiting=lambda: None)
        self._lock.__enter__()

    def __exit__(self, *details: object) -> None:
        self._lock.__exit__(None, None, None)


def _scratch(target: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a folder beside a library to make it in, and drop those of builds that were killed.

    Whoever calls holds the library's lock: no other build of it is under way.
    """
    for left in target.parent.glob(f"{target.stem}-*"):
        shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=f"{target.stem}-", dir=target.parent)


def _build_backend(target: Path) -> None:
    root = Path(torch.__file__).parent
    # Without this definition some headers of ATen bring the declarations of all its operators.
    flags = ["-std=c++20", "-fPIC", "-fvisibility=hidden", "-w", "-DAT_PER_OPERATOR_HEADERS"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    flags += ["-isystem", str(root / "include"), "-I", str(emulator.include_dir())]
    flags += ["-I", str(_KERNELS)]
    library = emulator.library_path()
    link = [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-ltorch_cpu", "-lc10"]
    link += [str(library), f"-Wl,-rpath,{library.parent}"]
    with _scratch(target) as scratch:
        made = _compile(_units(_SOURCES), flags, link, Path(scratch))
        test = [sys.executable, "-c", _SMOKE_TEST, str(library), str(made)]
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        failed = "the npu device was built, and PyTorch does not take it"
        _run_together([(test, failed)], environment)
        made.replace(target)


def _build_kernels(target: Path) -> None:
    from opkit.toolchain import Toolkit

    toolkit = Toolkit.installed()
    flags = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-D__NPU_ARCH__=2201"]
    flags += ["-D__CCE_AICORE__=220", "-ffp-contract=off", "-isystem", str(toolkit.include_dir)]
    link = [str(toolkit.library), f"-Wl,-rpath,{Path(str(toolkit.library)).parent}"]
    with _scratch(target) as scratch:
        made = _compile(
            [[path] for path in sorted(_KERNELS.glob("*.cpp"))], flags, link, Path(scratch)
        )
        made.replace(target)


def _units(folder: Path) -> list[list[Path]]:
    """Return the C++ of a folder as translation units of about the same size.

    Each file alone takes five seconds to read PyTorch's headers and one or two for what it says
    itself. How many units there are does not depend on the machine: what compiles on one does on
    all, though the sources of a unit share their unnamed namespaces.
    """
    units: list[list[Path]] = [[] for _ in range(_UNITS)]
    sizes = [0] * _UNITS
    for size, path in sorted(((p.stat().st_size, p) for p in folder.glob("*.cpp")), reverse=True):
        smallest = sizes.index(min(sizes))
        units[smallest].append(path)
        sizes[smallest] += size
    return [sorted(unit) for unit in units if unit]


def _compile(
    units: Sequence[Sequence[Path]], flags: Sequence[str], link: Sequence[str], scratch: Path
) -> Path:
    """Compile units of sources side by side and return the library that they make."""
    from opkit.toolchain import find_compiler

    argv = find_compiler().argv
    launcher = [found] if (found := shutil.which("ccache")) and "ccache" not in argv[0] else []

    objects, waiting = [], []
    for *before, source in units:
        objects.append(scratch / f"{source.stem}.o")
        optimise = _OPTIMISE.get(source.name, "-O1")
        included = [word for path in before for word in ("-include", str(path))]
        command = [*launcher, *argv, optimise, *flags, *included, "-c", str(source)]
        names = ", ".join(path.name for path in (*before, source))
        waiting.append(([*command, "-o", str(objects[-1])], f"{names} does not compile"))
    # Not by a pool of threads: none starts any more in a program that ends meanwhile.
    width = min(4, os.cpu_count() or 1)
    for first in range(0, len(waiting), width):
        _run_together(waiting[first : first + width])
    library = scratch / "library.so"
    command = [*argv, "-shared", "-s", "-o", str(library), *map(str, objects), *link]
    _run_together([(command, "the library cannot be linked")])
    return library


def _run_together(
    commands: Sequence[tuple[Sequence[str], str]], environment: dict[str, str] | None = None
) -> None:
    """Run commands side by side, each with what is said where it fails."""
    with ExitStack() as stack:
        running = []
        for command, failed in commands:
            said = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=said, env=environment
            )
            stack.callback(process.kill)
            running.append((process, said, failed))
        for process, said, failed in running:
            if process.wait() != 0:
                said.seek(0)
                raise SetupError(
                    f"{failed}:\n{said.read().strip()[-4000:]}",
                    help='"opkit doctor" tells what this machine lacks',
                )
