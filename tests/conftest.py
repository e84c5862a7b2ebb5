"""Compile a kernel given as text and run it on NumPy arrays."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opkit import emulator, runtime, toolchain
from opkit.errors import SetupError
from opkit.files import write_aside
from opkit.folders import cache_folder
from opkit.toolchain import KernelImage, image
from opkit.toolchain.flags import generated_flags

PROLOGUE = '#include "kernel_operator.h"\nusing namespace AscendC;\n'


_TORCH_IS_MISSING = importlib.util.find_spec("torch") is None


def pytest_configure() -> None:
    # Every graph that a pass of the compiler makes is checked to be well formed.
    os.environ.setdefault("OPKIT_VERIFY_PASSES", "1")
    # Jobs that a shell starts in the background ignore interrupts, and so would what tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark what runs when, then order what is left of it."""
    _mark(items)
    yield
    items[:] = longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests with those that say how many seconds they take before the others.

    With `--dist worksteal` each worker begins with an equal stretch of them, and whoever is done
    takes some of the end of another's: long ones stand at the beginnings of the stretches.
    """

    def seconds(item: pytest.Item) -> float:
        return max((mark.kwargs.get("seconds", 0) for mark in item.iter_markers("slow")), default=0)

    long = sorted(filter(seconds, items), key=seconds, reverse=True)
    rest = [item for item in items if not seconds(item)]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        first = long[worker::workers]
        others = (len(items) - len(ordered)) // (workers - worker) - len(first)
        ordered += [*first, *rest[: max(others, 0)]]
        del rest[: max(others, 0)]
    return [*ordered, *rest]


def _mark(items: list[pytest.Item]) -> None:
    """Mark what needs torch, by its marker or for its module's import; without torch, skip it. Of
    a test that is sampled by n, mark all but its first and about one in n parameters slow."""
    seen: set[str] = set()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is None:
            continue
        name = item.nodeid.partition("[")[0]
        # By names: a step of n would meet the same type each time.
        if name in seen and zlib.crc32(item.nodeid.encode()) % sampled.args[0]:
            item.add_marker("slow")
        seen.add(name)
    skip = pytest.mark.skip(reason="torch is not installed")
    for item in items:
        if isinstance(getattr(getattr(item, "module", None), "torch", None), ModuleType):
            item.add_marker("torch")
        if _TORCH_IS_MISSING and item.get_closest_marker("torch"):
            item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a test that is skipped for want of torch unmarked: CI would not run it with torch."""
    outcome: Any = yield
    report = outcome.get_result()
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if report.skipped and "torch" in reason and not item.get_closest_marker("torch"):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} is not marked torch: {reason}"


@pytest.fixture(scope="session", autouse=True)
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep what tests log, errors that they expect above all, out of the user's own log."""
    folder = tmp_path_factory.mktemp("log")
    os.environ["ASCEND_PROCESS_LOG_PATH"] = str(folder)
    return folder


def _configuration() -> runtime.Configuration | None:
    return runtime.configuration() if "opkit.emulator._emulator" in sys.modules else None


@pytest.fixture(autouse=True)
def _device_left_as_it_was() -> Iterator[None]:
    """Set the device back to what it was: commands that run in this process change it."""
    before = _configuration() or runtime.Configuration(CHIPS[2201], 0, False, False, 0)
    yield
    if _configuration() not in (before, None):
        runtime.configure(**asdict(before))


@pytest.fixture(autouse=True)
def _same_numbers_in_each_run() -> None:
    """Seed torch: what a test draws is the same in each run, and in each order of tests."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel."""

    library: Path
    source: Path
    name: str
    launched: runtime.Kernel

    def __call__(
        self, *arguments: np.ndarray | bytes, block_dim: int = 1, tiling_key: int = 0
    ) -> runtime.LaunchResult:
        return self.launched.launch(arguments, block_dim, tiling_key=tiling_key)


MODES = {"Vector": "vector", "Cube": "cube", "Mix11": "mix 1:1", "Mix12": "mix 1:2"}
CHIPS = {2201: "Ascend910B2", 2002: "Ascend310P3"}
# Not the -O2 of users' kernels: some 400 texts compile in a third less time, and the library does
# most of the work. Projects that tests build, examples and corpus, are compiled as users' are.
OPTIONS = ("-O0",)
# Kernels of this process that are compiled so: they are not taken for those of users' options.
_NOT_OPTIMISED: dict[tuple[object, ...], KernelImage] = {}


@pytest.fixture(autouse=True)
def _written_kernels_are_not_optimised(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compile what opkit's compiler writes in half of the time; slow tests do it as users do."""
    is_sampled = request.node.get_closest_marker("sampled") is not None
    if is_sampled or request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(image, "generated_flags", lambda c: (*generated_flags(c), *OPTIONS))
        monkeypatch.setattr(image, "_known", _NOT_OPTIMISED)


@pytest.fixture(scope="session")
def compile_kernel() -> Callable[..., Kernel]:
    """Return a function that compiles the text of a kernel named `kernel`, once a machine.

    All processes of a run and later runs share the user's cache: a kernel's key holds the text with
    its path, the compiler and the headers' contents.
    """
    folder = cache_folder() / "kernels-of-tests"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        toolchain.find_compiler()
    except SetupError:
        pytest.skip("no C++ compiler")

    def compile_text(body: str, mode: str | None = None, arch: int = 2201) -> Kernel:
        text = PROLOGUE + textwrap.dedent(body)
        source = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
        if not source.exists():
            write_aside(source, text.encode())
        image = toolchain.compile_kernel(
            source,
            CHIPS[arch],
            kernels=["kernel"],
            mode=mode and MODES[mode],
            options=OPTIONS,
            cache_dir=folder,
        )
        return Kernel(image.library, source, "kernel", runtime.Kernel(image))

    return compile_text


CompileShared = Callable[..., None]


@pytest.fixture(scope="session")
def compile_shared(tmp_path_factory: pytest.TempPathFactory) -> CompileShared:
    """Return a function that compiles one file to a shared library, without the toolchain.

    A text is compiled once a session and for each list of flags. So are the headers that it names,
    which are read before it.
    """
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    library = emulator.library_path()
    common = ("-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique")
    precompiled: dict[tuple[str, ...], Path] = {}
    compiled: dict[tuple[str, ...], Path] = {}

    def run(*words: str) -> None:
        done = subprocess.run([compiler, *common, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def compile_one(source: Path, target: Path, *flags: str, headers: Sequence[str] = ()) -> None:
        text = (source.read_text(encoding="utf-8"), source.name, *flags, "--", *headers)
        if text in compiled:
            # A file of its own: the loader knows libraries by their files.
            shutil.copyfile(compiled[text], target)
            return
        flags = ("-I", str(emulator.include_dir()), *flags)
        first: tuple[str, ...] = ()
        if headers:
            key = (*flags, *headers)
            if key not in precompiled:
                header = tmp_path_factory.mktemp("headers") / "headers.h"
                header.write_text("".join(f'#include "{each}"\n' for each in headers))
                run(*flags, "-x", "c++-header", str(header), "-o", f"{header}.gch")
                precompiled[key] = header
            first = ("-include", str(precompiled[key]))
        linked = ("-L", str(library.parent), "-lopkit_emulator")
        kept = tmp_path_factory.mktemp("libraries") / target.name
        run(*first, *flags, "-shared", str(source), "-o", str(kept), *linked)
        shutil.copyfile(kept, target)
        compiled[text] = kept

    return compile_one


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
_BROWSER_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --enable-logging=stderr"
    " --disable-background-networking --disable-component-update --dump-dom"
)
_LOOK = """
const style = getComputedStyle(document.body);
document.title = JSON.stringify({
  wide: document.documentElement.scrollWidth - window.innerWidth,
  paper: style.backgroundColor,
  ink: style.color,
  extra: window.opkitLook ? window.opkitLook() : null,
});
"""


@pytest.fixture
def open_page(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that opens the text of a page in a browser and says how it looks.

    `wide`: by how many pixels it overflows; `paper`, `ink`: its colours; `extra`: what
    `window.opkitLook` of the script given returns. Anything on the console is an error.
    """
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")

    def look(page: str, *, width: int, dark: bool = False, script: str = "") -> dict[str, Any]:
        path = tmp_path / "page.html"
        path.write_text(
            page.replace("</body>", f"<script>{script}{_LOOK}</script></body>"), "utf-8"
        )
        options = [*_BROWSER_OPTIONS.split(), f"--window-size={width},900"]
        if dark:
            options.append("--blink-settings=preferredColorScheme=0")
        done = subprocess.run(
            [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'user'}", path.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=180,
        )
        assert "CONSOLE" not in done.stderr, done.stderr
        title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
        assert title is not None
        found: dict[str, Any] = json.loads(title[1])
        return found

    return look
