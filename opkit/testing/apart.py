"""An operator's library in a process of its own, called as if it were here.

Kernels and host code reach all memory of their process. So what judges them has another one: the
golden, the comparison and the verdict never share theirs with what they judge.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import opkit
from opkit import runtime
from opkit.executor import (
    NOT_OURS,
    LocalExecutor,
    Lost,
    Plain,
    Work,
    folder_of,
    plain_error,
    plain_value,
    portable_error,
    read_error,
    read_value,
)
from opkit.schema import AttrValue
from opkit.testing.cases import Case
from opkit.testing.numbers import Array, Input
from opkit.testing.wide_runs import Wide, WideOutput, beside_wide, wide_outputs

__all__ = ["LaunchLost", "LibraryApart", "close_library", "hidden_files"]

_MOST_BYTES = 1 << 36
"""Most bytes of a launch's outputs."""


class LaunchLost(Exception):
    """The process of the kernels has ended in the middle of a launch: no answer to judge."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(str(lost))
        self.lost = lost


@dataclass(frozen=True)
class _Request:
    """One launch; what it runs on is what the process that asks has configured."""

    op_type: str
    inputs: Sequence[Input]
    attrs: Mapping[str, AttrValue]
    dtypes: Sequence[str]
    out_shape: Sequence[Sequence[int] | None] | None
    out_dtype: Sequence[str | None] | None
    configuration: runtime.Configuration
    wide: bool | None = None
    """Whether the wider run beside it is of double precision; None: there is none."""


class LibraryApart:
    """An artifact folder whose kernels and host code run in another process, one for all launches.

    It ends with `close`, and with this process.
    """

    def __init__(
        self, folder: Path, chip: str, *, timeout_seconds: float = 0.0, hidden: Sequence[Path] = ()
    ) -> None:
        """Open the library there.

        Args:
            folder: the artifact folder.
            chip: what the process starts with; a launch runs on what is configured here by then.
            timeout_seconds: how long a launch may go on without progress; 0: for ever.
            hidden: what says which results are right, and cannot be read there.
        Raises:
            OpkitError: as `runtime.open`; the process ends as soon as the library is loaded.
        """
        folders = {"artifact": folder_of(folder)}
        setup = (chip, timeout_seconds)
        work = Work(
            *(_begin, setup, folders),
            answers=Plain,
            hidden=tuple(hidden),
            most_bytes=_MOST_BYTES,
        )
        self._crew = LocalExecutor(1).open(work)
        self._changed: list[str] = []
        self._ask(None)

    def close(self) -> None:
        """End the process."""
        self._crew.close()

    def run(
        self,
        op_type: str,
        inputs: Sequence[Input],
        attrs: Mapping[str, AttrValue],
        *,
        dtypes: Sequence[str],
        out_shape: Sequence[Sequence[int] | None] | None = None,
        out_dtype: Sequence[str | None] | None = None,
    ) -> list[Array]:
        """Return the outputs; arguments and errors as `runtime.Library.run`.

        Raises:
            LaunchLost: the process has ended, or never answers.
        """
        now = runtime.configuration()
        request = _Request(op_type, inputs, attrs, dtypes, out_shape, out_dtype, now)
        answer = self._ask(request)
        self._changed = [str(name) for name in answer.get("changed") or ()]
        with _only_ours():
            return list(read_value(answer["outputs"]))

    def run_wide(
        self,
        is_double: bool,
        op_type: str,
        inputs: Sequence[Input],
        attrs: Mapping[str, AttrValue],
        *,
        dtypes: Sequence[str],
        out_shape: Sequence[Sequence[int] | None] | None = None,
        out_dtype: Sequence[str | None] | None = None,
    ) -> Wide:
        """Return what a launch computes in single or in double precision, see `beside_wide`.

        Raises:
            LaunchLost: the process has ended, or never answers.
        """
        now = runtime.configuration()
        request = _Request(op_type, inputs, attrs, dtypes, out_shape, out_dtype, now, is_double)
        answer = self._ask(request)
        with _only_ours():
            outputs = [WideOutput(*_alike(read_value(parts))) for parts in answer["wide"]]
            return Wide(tuple(outputs), tuple(map(str, answer["unfollowed"])))

    def changed_inputs(self) -> list[str]:
        """Return the inputs that the kernel of the last launch has changed, by name."""
        return self._changed

    def _ask(self, request: _Request | None) -> dict[str, Any]:
        (found,) = self._crew.run([request])
        if isinstance(found, Lost):
            raise LaunchLost(found)
        if not isinstance(found, dict):
            raise LaunchLost(Lost(NOT_OURS, 1))
        if "error" in found:
            try:
                error = read_error(found)
            except ValueError as wrong:
                raise LaunchLost(Lost(NOT_OURS, 1)) from wrong
            raise error
        return found


def hidden_files(root: Path, package: Path, cases: Iterable[Case] = ()) -> tuple[Path, ...]:
    """Return what a project says of its right results, in Python or as data of its tests.

    Args:
        root: the project's folder.
        package: where its golden.py lies.
        cases: whose inputs the process makes that is not to read the rest: their files it may.
    """
    # References that cases name lie beside the command's own folder.
    places = {path.resolve() for path in (root, package, Path())}
    opkits = Path(opkit.__file__).resolve().parent
    places = {place for place in places if not place.is_relative_to(opkits)}
    hidden = [file for place in places for file in place.glob("*.py")]
    hidden += [place / "__pycache__" for place in places]
    sources = [source for case in cases for source in case.sources if source is not None]
    tests = root / "tests"
    if not any(source.file is not None for source in sources):
        return (*hidden, tests)
    return (*hidden, *tests.glob("*.py"))


def close_library(library: object) -> None:
    """End the process of a library, where it has one of its own."""
    if isinstance(library, LibraryApart):
        library.close()


@contextmanager
def _only_ours() -> Iterator[None]:
    """Take an answer that is not as this module writes it for no answer."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchLost(Lost(NOT_OURS, 1)) from error


def _alike(arrays: object) -> Sequence[Array]:
    """Return arrays of one shape; ValueError for anything else."""
    if not isinstance(arrays, tuple) or not all(isinstance(one, np.ndarray) for one in arrays):
        raise ValueError("no arrays")
    if len({one.shape for one in arrays}) != 1:
        raise ValueError("arrays of several shapes")
    return arrays


def _launched(library: runtime.Library, request: _Request) -> Plain:
    """Return a launch's outputs, or what the wider run made of them."""

    def launch() -> list[Array]:
        return library.run(
            request.op_type,
            request.inputs,
            request.attrs,
            dtypes=request.dtypes,
            out_shape=request.out_shape,
            out_dtype=request.out_dtype,
        )

    if request.wide is None:
        return {"outputs": plain_value(list(launch())), "changed": library.changed_inputs()}
    with beside_wide(is_double=request.wide):
        found = wide_outputs(launch())
    parts = [plain_value((one.values, one.wide, one.cores, one.stores)) for one in found.outputs]
    return {"wide": parts, "unfollowed": list(found.unfollowed)}


def _begin(
    setup: tuple[str, float], folders: Mapping[str, Path]
) -> Callable[[_Request | None], Plain]:
    chip, timeout_seconds = setup
    runtime.configure(chip)
    opened: list[runtime.Library] = []

    def run(request: _Request | None) -> Plain:
        try:
            if not opened:
                opened.append(runtime.open(folders["artifact"]))
            if request is None:
                return {}
            if runtime.configuration() != request.configuration:
                runtime.configure(**asdict(request.configuration))
            with runtime.time_limit(timeout_seconds, counts_host=True):
                return _launched(opened[0], request)
        # Whatever it is, it goes out as plain values: no other would be read.
        except Exception as error:
            return plain_error(portable_error(error, traceback.format_exc()))

    return run
