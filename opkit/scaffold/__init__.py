"""A prototype to a project on disk: rendered as text, then written without losing edits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.scaffold.disk import RECORD, Action, FileStatus, write
    from opkit.scaffold.render import DEFAULT_COMPUTE_UNIT, FRAMEWORKS, render
    from opkit.scaffold.single_precision import formula_in_single_precision

__all__ = [
    "DEFAULT_COMPUTE_UNIT",
    "FRAMEWORKS",
    "RECORD",
    "Action",
    "FileStatus",
    "formula_in_single_precision",
    "render",
    "write",
]

_HOME = {
    "DEFAULT_COMPUTE_UNIT": "render",
    "FRAMEWORKS": "render",
    "RECORD": "disk",
    "Action": "disk",
    "FileStatus": "disk",
    "formula_in_single_precision": "single_precision",
    "render": "render",
    "write": "disk",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    # The submodule `render` has just been bound under its name: the function wins.
    globals()[name] = value
    return value
