"""PyPTO programs: the surface of the article and the names most used of the public project's.

    from opkit import pypto

    @pypto.jit
    def gate(x, weight, bias):
        return pypto.relu(pypto.matmul(x, weight) + bias)

    y = gate(x, weight, bias)      # NumPy arrays, or torch tensors on the CPU

A function is traced once for each kind of arguments and run by the kernels that opkit.compiler
makes of it. Programs that say `import pypto` run under `opkit run`.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .annotations import DYNAMIC, STATIC, Tensor
    from .blocks import function
    from .diagnostics import PyptoWarning
    from .foreign import as_pypto
    from .programs import Function, Program, jit, run_kernels_only

__all__ = [
    "DYNAMIC",
    "STATIC",
    "Function",
    "Program",
    "PyptoWarning",
    "Tensor",
    "as_pypto",
    "function",
    "jit",
    "run_kernels_only",
]

_HOME = {
    "DYN": "annotations",
    "DYNAMIC": "annotations",
    "STATIC": "annotations",
    "Tensor": "annotations",
    "PyptoWarning": "diagnostics",
    "as_pypto": "foreign",
    "Function": "programs",
    "Program": "programs",
    "SymInt": "symbolic",
    "function": "blocks",
    "jit": "programs",
    "run_kernels_only": "programs",
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _HOME:
        value: Any = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    from .enumerations import ENUMERATIONS, DataType

    if name in DataType.__members__:
        return DataType[name]
    if name in ENUMERATIONS:
        return ENUMERATIONS[name]
    if name in ("experimental", "platform", "runtime"):
        return import_module(f".{name}", __name__)
    if name == "frontend":
        from .blocks import function
        from .programs import jit

        return SimpleNamespace(jit=jit, function=function)
    from .functions import FUNCTIONS

    if name in FUNCTIONS:
        return FUNCTIONS[name]
    import difflib

    near = difflib.get_close_matches(name, [*FUNCTIONS, *_HOME], n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"opkit has no pypto.{name}{hint}", name=name)
