"""What a generated Python package stands on: its compiled operators, found and called."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

from opkit.runtime.library import open as open_library

__all__ = ["OperatorPackage"]


class OperatorPackage:
    """The compiled operators of one generated package."""

    def __init__(self, name: str, folders: Iterable[str], *, modules: Sequence[str] = ()) -> None:
        """Find and open the operators.

        Args:
            name: the package's `__name__`.
            folders: its `__path__`.
            modules: the torch.nn.Module classes of its `_torch`; none without a PyTorch binding.
        Raises:
            ImportError: they are not built, or not for this Python.
            SetupError: another version of opkit built them.
        """
        self.name = name
        self.artifact = _find_artifact(name, [Path(folder) for folder in folders])
        """The folder of the compiled operators."""
        self._modules = tuple(modules)
        # Opens the emulator's library first: the extensions are linked against it by name only.
        self.library = open_library(self.artifact)
        self._numpy = _load_extension(name, self.artifact)

    def call(self, operator: str, inputs: Sequence[object], attributes: Sequence[object]) -> Any:
        """Run an operator on NumPy arrays, or on torch tensors where one of the inputs is one."""
        if self._modules and _holds_tensor(inputs):
            _is_registered(self.name)
            namespace = getattr(sys.modules["torch"].ops, self.name)
            return getattr(namespace, operator)(*inputs, *attributes)
        return getattr(self._numpy, operator)(*inputs, *attributes)

    def find_module(self, name: str) -> Any:
        """Return a torch.nn.Module class: the package's `__getattr__`, so that torch is loaded when
        the first one is asked for."""
        if name in self._modules:
            return getattr(importlib.import_module(f"{self.name}._torch"), name)
        raise AttributeError(f"module {self.name!r} has no attribute {name!r}")

    def register_torch(self) -> None:
        """Make `torch.ops` know the operators at once where torch is in use already."""
        if "torch" in sys.modules and (self.artifact / "_torch.so").is_file():
            importlib.import_module(f"{self.name}._torch")


def _holds_tensor(inputs: Sequence[object]) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    for value in inputs:
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, torch.Tensor):
                return True
    return False


def _is_registered(package: str) -> bool:
    """Make torch know the operators; true. Tensors may come before anything else of torch did."""
    importlib.import_module(f"{package}._torch")
    return True


# What torch.compiler.assume_constant_result sets, without importing torch here: the compiler runs
# this when it meets it, and has nothing to trace in it.
_is_registered._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _find_artifact(name: str, folders: Sequence[Path]) -> Path:
    """Return the folder of the operators: a checkout's build, or what the wheel carries."""
    checkouts = [folder.resolve().parent for folder in folders]
    candidates = [
        checkout / "build" / "opkit"
        for checkout in checkouts
        if (checkout / "pyproject.toml").is_file()
    ]
    # An editable install has two folders; only the one in site-packages holds _lib.
    candidates += [folder / "_lib" for folder in folders]
    for candidate in candidates:
        if (candidate / "manifest.json").is_file():
            return candidate
    raise ImportError(
        f"{name} is not built: no manifest.json in {' or '.join(map(str, candidates))};"
        ' run "opkit build" in the project'
    )


def _load_extension(name: str, folder: Path) -> ModuleType:
    paths = (folder / f"_numpy{suffix}" for suffix in EXTENSION_SUFFIXES)
    path = next((candidate for candidate in paths if candidate.is_file()), None)
    if path is None:
        raise ImportError(
            f'{folder} has no _numpy for this Python; run "opkit build" in the project'
        )
    spec = importlib.util.spec_from_file_location(f"{name}._numpy", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module for this Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
