"""Operator libraries: what `opkit build` wrote, callable on NumPy arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

import opkit
from opkit.dtypes import DTYPES, DType, dtype_names, find_dtype
from opkit.errors import SetupError, UsageError
from opkit.runtime.device import load_emulator

if TYPE_CHECKING:
    import opkit.emulator._emulator as _emulator

__all__ = ["AttrValue", "Library", "OutputSpec", "open", "raise_status"]

AttrValue: TypeAlias = (
    int
    | float
    | bool
    | str
    | Sequence[int]
    | Sequence[float]
    | Sequence[bool]
    | Sequence[Sequence[int]]
)
_Array: TypeAlias = npt.NDArray[np.generic]

_BY_GE_VALUE = {row.ge_value: row for row in DTYPES}
_REBUILD = 'run "opkit build" in the project again'


@dataclass(frozen=True)
class OutputSpec:
    """What one output of a call will be."""

    shape: tuple[int, ...]
    dtype: str
    """Canonical name, such as `bfloat16`, which NumPy carries as uint16."""


class Library:
    """An artifact folder, open. Its operators go by the names of their OpDef classes."""

    def __init__(self, folder: Path, native: _emulator.Library) -> None:
        self.folder = folder
        self._native = native

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def infer(
        self,
        op_type: str,
        inputs: Sequence[npt.ArrayLike | None],
        attrs: Mapping[str, AttrValue] | None = None,
        dtypes: Sequence[str | None] | None = None,
    ) -> list[OutputSpec]:
        """Return shape and dtype of each output, by the operator's InferShape and InferDataType.

        Takes what `run` takes, and raises what it raises; no kernel runs.
        """
        arrays, numbers = _bind(op_type, inputs, dtypes)
        found = self._native.infer(op_type, arrays, numbers, _plain_attrs(attrs))
        return [OutputSpec(tuple(shape), _BY_GE_VALUE[dtype].name) for shape, dtype in found]

    def run(
        self,
        op_type: str,
        inputs: Sequence[npt.ArrayLike | None],
        attrs: Mapping[str, AttrValue] | None = None,
        dtypes: Sequence[str | None] | None = None,
    ) -> list[_Array]:
        """Run an operator and return its outputs.

        Args:
            op_type: its OpDef class, such as `GeluCustom`.
            inputs: arrays in OpDef order, None for an absent optional one, a list of arrays for a
                dynamic one. Never written to.
            attrs: by name; those left out take the OpDef's defaults.
            dtypes: dtype names of the inputs, where NumPy's own do not say it: bfloat16 is carried
                as uint16. None stands for NumPy's.
        Returns:
            Fresh C-contiguous arrays; bfloat16 as uint16.
        Raises:
            UsageError: the operator does not take these inputs or attributes, or rejects them.
            SetupError: no kernel was built for these dtypes.
            KernelFault: the kernel faulted; the device can be used again.
        """
        arrays, numbers = _bind(op_type, inputs, dtypes)
        plain = _plain_attrs(attrs)
        found = self._native.infer(op_type, arrays, numbers, plain)
        rows = [_BY_GE_VALUE[dtype] for _, dtype in found]
        # What a kernel leaves unwritten is the same in every run: zeros, or the device's poison.
        outputs = [_zeros(op_type, shape, row) for (shape, _), row in zip(found, rows, strict=True)]
        self._native.run(op_type, arrays, numbers, plain, outputs, [row.ge_value for row in rows])
        return outputs


def open(folder: str | Path) -> Library:
    """Open an artifact folder that `opkit build` wrote, or that an installed package carries.

    Raises:
        SetupError: it is none, or another version of opkit built it.
    """
    load_emulator()
    import opkit.emulator._emulator as _emulator

    path = Path(folder)
    _check_manifest(path, abi_version=_emulator.abi_version)
    return Library(path, _emulator.Library(str(path)))


def raise_status(status: int, message: str) -> None:
    """Raise the exception for an `opkit_status` that this thread's last operator call returned.

    For extension modules that call operators through op_call.h; does nothing for OPKIT_OK.

    Raises:
        UsageError, SetupError, KernelFault, OpkitError: by status.
    """
    load_emulator()
    import opkit.emulator._emulator as _emulator

    _emulator.raise_status(status, message)


def _check_manifest(folder: Path, *, abi_version: int) -> None:
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
        built_by, built_abi = str(manifest["opkit"]), int(manifest["abi_version"])
    except FileNotFoundError as err:
        raise SetupError(
            f"{folder} holds no manifest.json: it is not an artifact folder", help=_REBUILD
        ) from err
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise SetupError(f"{path} cannot be read: {err!r}", help=_REBUILD) from err
    if _minor(built_by) != _minor(opkit.__version__):
        raise SetupError(
            f"{folder} was built by opkit {built_by}; this is opkit {opkit.__version__}",
            help=_REBUILD,
        )
    if built_abi != abi_version:
        raise SetupError(
            f"{folder} was built for kernel ABI {built_abi}; this opkit has ABI {abi_version}",
            help=_REBUILD,
        )


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _zeros(op_type: str, shape: Sequence[int], row: DType) -> _Array:
    try:
        return np.zeros(shape, dtype=row.numpy)
    except (MemoryError, ValueError) as err:
        raise SetupError(
            f"[{op_type}] this machine has no memory for an output of shape {tuple(shape)}",
            help="give it smaller inputs, or look at its InferShape",
        ) from err


def _bind(
    op_type: str,
    inputs: Sequence[npt.ArrayLike | None],
    dtypes: Sequence[str | None] | None,
) -> tuple[list[_Array | list[_Array] | None], list[int]]:
    """Return the inputs, contiguous and of native byte order, and their ge::DataType numbers.

    The numbers are flat: a dynamic input has one for each of its arrays.
    """
    names = [None] * len(inputs) if dtypes is None else list(dtypes)
    if len(names) != len(inputs):
        raise UsageError(f"[{op_type}] {len(inputs)} inputs but {len(names)} dtypes")
    arrays: list[_Array | list[_Array] | None] = []
    numbers: list[int] = []
    for index, (value, name) in enumerate(zip(inputs, names, strict=True)):
        where = f"[{op_type}] input {index}"
        if value is None:
            arrays.append(None)
            numbers.append(0)
        elif (items := _list_of(value)) is not None:
            members = [_carried(f"{where}[{k}]", item, name) for k, item in enumerate(items)]
            arrays.append([array for array, _ in members])
            numbers.extend(number for _, number in members)
        else:
            array, number = _carried(where, value, name)
            arrays.append(array)
            numbers.append(number)
    return arrays, numbers


def _list_of(value: object) -> Sequence[npt.ArrayLike] | None:
    """Return a dynamic input's arrays: a list of arrays, not of numbers; None for anything else."""
    if isinstance(value, (list, tuple)) and any(hasattr(item, "dtype") for item in value):
        return value
    return None


def _carried(where: str, value: npt.ArrayLike, name: str | None) -> tuple[_Array, int]:
    array = np.asarray(value)
    row = _dtype_of(where, array, name)
    # A type that NumPy lacks (ml_dtypes' bfloat16) is carried by its bits.
    if array.dtype.name == row.name and row.numpy not in (None, row.name):
        array = array.view(np.dtype(row.numpy))
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.require(native, requirements=["C", "ALIGNED"]), row.ge_value


def _dtype_of(where: str, array: _Array, name: str | None) -> DType:
    row = find_dtype(array.dtype.name if name is None else name)
    if row is None:
        given = array.dtype.name if name is None else name
        raise UsageError(
            f'{where}: "{given}" is not a data type of the AI core',
            help=f"convert the array to one of {', '.join(dtype_names()[: len(DTYPES)])}",
        )
    if array.dtype.name not in (row.numpy, row.name):
        raise UsageError(
            f"{where}: {row.name} is carried as {row.numpy}, but the array is {array.dtype.name}"
        )
    return row


def _plain_attrs(attrs: Mapping[str, AttrValue] | None) -> dict[str, object]:
    """Return the attributes with NumPy's scalars and arrays as Python's own."""
    plain: dict[str, object] = {}
    for name, value in (attrs or {}).items():
        plain[name] = value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
    return plain
