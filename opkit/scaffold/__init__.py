"""A prototype to a project on disk: rendered as text, then written without losing edits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.scaffold.disk import RECORD, Action, FileStatus, write
    from opkit.scaffold.formula import UnsupportedGradient, unsupported_gradients
    from opkit.scaffold.render import (
        DEFAULT_COMPUTE_UNIT,
        FRAMEWORKS,
        gradient_gaps,
        own_gradients,
        render,
    )
    from opkit.scaffold.single_precision import formula_in_single_precision

__all__ = [
    "DEFAULT_COMPUTE_UNIT",
    "FRAMEWORKS",
    "RECORD",
    "Action",
    "FileStatus",
    "UnsupportedGradient",
    "formula_in_single_precision",
    "gradient_gaps",
    "own_gradients",
    "render",
    "unsupported_gradients",
    "write",
]

_HOME = {
    "DEFAULT_COMPUTE_UNIT": "render",
    "FRAMEWORKS": "render",
    "RECORD": "disk",
    "Action": "disk",
    "FileStatus": "disk",
    "UnsupportedGradient": "formula",
    "formula_in_single_precision": "single_precision",
    "gradient_gaps": "render",
    "own_gradients": "render",
    "render": "render",
    "unsupported_gradients": "formula",
    "write": "disk",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{home}")
    # The submodule `render` may just have been bound under its name: the function wins.
    globals().update({key: getattr(module, key) for key, at in _HOME.items() if at == home})
    value: object = globals()[name]
    return value
