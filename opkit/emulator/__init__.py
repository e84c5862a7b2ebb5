"""The emulated AI core: where its headers and its library lie."""

from __future__ import annotations

from pathlib import Path

from opkit.errors import SetupError

__all__ = ["LIBRARY_NAME", "device_kernels_path", "include_dir", "library_path"]

LIBRARY_NAME = "libopkit_emulator.so"


def include_dir() -> Path:
    """Return the folder of `kernel_operator.h` and the other headers that kernels include.

    Raises:
        SetupError: this installation lacks them.
    """
    return _find(Path("include"), "headers")


def library_path() -> Path:
    """Return the path of `libopkit_emulator.so`, which kernels link and Python loads first.

    Raises:
        SetupError: this installation lacks it.
    """
    return _find(Path("lib") / LIBRARY_NAME, "library")


def device_kernels_path() -> Path:
    """Return the path of the compiled kernels of PyTorch's device (`opkit/kernels`).

    Raises:
        SetupError: this installation lacks them.
    """
    return _find(Path("lib") / "libopkit_device_kernels.so", "device kernels")


def _find(below: Path, what: str) -> Path:
    # An editable install has two folders on __path__: sources in the checkout, binaries in
    # site-packages.
    for folder in __path__:
        candidate = Path(folder) / below
        if candidate.exists():
            return candidate.resolve()
    package = Path(__file__).parents[1]
    if package.parent == Path.cwd():
        help = f"{package}/ hides an installed opkit from Python: work in another folder"
    else:
        help = 'install it with "pip install ." in the checkout, or "pip install opkit"'
    raise SetupError(f"this opkit lacks the emulator's {what} ({below})", help=help)
