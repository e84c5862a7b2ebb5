"""Rmsnorm: operators for AI cores, called on NumPy arrays or torch tensors.

    import numpy as np
    import rmsnorm
    rmsnorm.rmsnorm(x, gamma)

bfloat16 arrays are uint16 arrays of its bits, or arrays of ml_dtypes.bfloat16.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

from opkit import runtime

__all__ = ["rmsnorm", "rmsnorm_grad"]


def _find_artifact() -> Path:
    """Return the folder of the compiled operator: a source checkout's build, or what the wheel carries."""
    checkout = Path(__file__).resolve().parent.parent
    candidates = [checkout / "build" / "opkit"] if (checkout / "pyproject.toml").is_file() else []
    # An editable install has two folders here; only the one in site-packages holds _lib.
    candidates += [Path(folder) / "_lib" for folder in __path__]
    for candidate in candidates:
        if (candidate / "manifest.json").is_file():
            return candidate
    raise ImportError(
        f"rmsnorm is not built: no manifest.json in {' or '.join(map(str, candidates))};"
        ' run "opkit build" in the project'
    )


def _load_extension(folder: Path) -> ModuleType:
    candidates = (folder / f"_numpy{suffix}" for suffix in EXTENSION_SUFFIXES)
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise ImportError(f'{folder} has no _numpy for this Python; run "opkit build" in the project')
    spec = importlib.util.spec_from_file_location(f"{__name__}._numpy", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module for this Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_ARTIFACT = _find_artifact()
# Opens the emulator's library first: the extensions below are linked against it by name only.
_library = runtime.open(_ARTIFACT)
_numpy = _load_extension(_ARTIFACT)


def _is_tensor(*values: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and any(isinstance(value, torch.Tensor) for value in values)


def _torch_operators() -> Any:
    return importlib.import_module(f"{__name__}._torch").operators


def rmsnorm(x, gamma, *, epsilon=1e-06) -> Any:
    """Return y.

        y = x * rsqrt(mean(x**2, axis=-1) + epsilon) * gamma

    Inputs are arrays or CPU tensors, all of one kind; the result is of that kind too.
    """
    if _is_tensor(x, gamma):
        return _torch_operators().rmsnorm(x, gamma, epsilon)
    return _numpy.rmsnorm(x, gamma, epsilon=epsilon)


def rmsnorm_grad(grad_y, x, gamma, *, epsilon=1e-06) -> Any:
    """Return grad_x, grad_gamma, the gradients of the outputs of rmsnorm.

    Inputs are arrays or CPU tensors, all of one kind; the result is of that kind too.
    """
    if _is_tensor(grad_y, x, gamma):
        return _torch_operators().rmsnorm_grad(grad_y, x, gamma, epsilon)
    return _numpy.rmsnorm_grad(grad_y, x, gamma, epsilon=epsilon)


def __getattr__(name: str) -> Any:
    # The torch modules load torch, so they are made when first asked for.
    if name in ("Rmsnorm", ):
        return getattr(importlib.import_module(f"{__name__}._torch"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if "torch" in sys.modules and (_ARTIFACT / "_torch.so").is_file():
    # Makes torch.ops.rmsnorm work at once where torch is in use already.
    _torch_operators()
