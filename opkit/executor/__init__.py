"""Many cases on many workers: processes of this machine, or a Dask cluster; one report either way.

`with open_executor("local:4").open(work) as crew: crew.run(cases)`. What a case does is the same on
each; what runs where, and in which order, does not show in the results.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.executor.choose import EXECUTORS, open_executor
    from opkit.executor.crew import Crew, Executor
    from opkit.executor.here import HereExecutor
    from opkit.executor.hiding import can_hide_files
    from opkit.executor.local import Cage, LocalExecutor, bare
    from opkit.executor.plain import Plain, plain_array, plain_value, read_array, read_value
    from opkit.executor.records import plain_error, plain_record, read_error, read_record
    from opkit.executor.work import (
        ATTEMPTS,
        NOT_OURS,
        Folder,
        Lost,
        Work,
        folder_of,
        portable_error,
    )

__all__ = [
    "ATTEMPTS",
    "EXECUTORS",
    "NOT_OURS",
    "Cage",
    "Crew",
    "Executor",
    "Folder",
    "HereExecutor",
    "LocalExecutor",
    "Lost",
    "Plain",
    "Work",
    "bare",
    "can_hide_files",
    "folder_of",
    "open_executor",
    "plain_array",
    "plain_error",
    "plain_record",
    "plain_value",
    "portable_error",
    "read_array",
    "read_error",
    "read_record",
    "read_value",
]

_HOMES = {
    "ATTEMPTS": "work",
    "Cage": "local",
    "EXECUTORS": "choose",
    "Crew": "crew",
    "Executor": "crew",
    "Folder": "work",
    "HereExecutor": "here",
    "LocalExecutor": "local",
    "Lost": "work",
    "NOT_OURS": "work",
    "Plain": "plain",
    "Work": "work",
    "bare": "local",
    "can_hide_files": "hiding",
    "folder_of": "work",
    "open_executor": "choose",
    "plain_array": "plain",
    "plain_error": "records",
    "plain_record": "records",
    "plain_value": "plain",
    "portable_error": "work",
    "read_array": "plain",
    "read_error": "records",
    "read_record": "records",
    "read_value": "plain",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
