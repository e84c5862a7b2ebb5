"""Operator libraries: what `opkit build` wrote, callable on NumPy arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

import opkit
from opkit import log
from opkit.dtypes import INT4, TENSOR_DTYPES, DType, find_tensor_dtype
from opkit.errors import SetupError, UsageError
from opkit.runtime.allocation import zeros
from opkit.runtime.device import load_emulator
from opkit.versions import is_compatible

if TYPE_CHECKING:
    import opkit.emulator._emulator as _emulator

__all__ = [
    "AttrValue",
    "Library",
    "OutputSpec",
    "Tiling",
    "changed_inputs",
    "open",
    "raise_status",
]

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
GivenShapes: TypeAlias = Sequence[int] | Sequence[Sequence[int] | None]
"""The shape of the one output, or one entry an output: its shape, or None where it is inferred."""
GivenDtypes: TypeAlias = str | Sequence[str | None]
"""The same of dtype names."""

_BY_GE_VALUE = {row.ge_value: row for row in TENSOR_DTYPES}
_REBUILD = 'run "opkit build" in the project again'


@dataclass(frozen=True)
class OutputSpec:
    """What one output of a call will be."""

    shape: tuple[int, ...]
    dtype: str
    """Canonical name, such as `bfloat16`, which NumPy carries as uint16."""


class Tiling(NamedTuple):
    """What a tiling function sets."""

    key: int
    blocks: int
    """Blocks of the launch."""
    data: bytes
    """The tiling data, as the kernel reads them."""


class Library:
    """An artifact folder, open. Its operators go by the names of their OpDef classes."""

    def __init__(self, folder: Path, native: _emulator.Library) -> None:
        self.folder = folder
        self._native = native

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def changed_inputs(self) -> list[str]:
        """Return the inputs that the kernel of this thread's last call has changed, by name."""
        return changed_inputs()

    def infer(
        self,
        op_type: str,
        inputs: Sequence[npt.ArrayLike | None],
        attrs: Mapping[str, AttrValue] | None = None,
        dtypes: Sequence[str | None] | None = None,
        *,
        out_shape: GivenShapes | None = None,
        out_dtype: GivenDtypes | None = None,
    ) -> list[OutputSpec]:
        """Return shape and dtype of each output, by the operator's InferShape and InferDataType.

        Takes what `run` takes, and raises what it raises; no kernel runs. A shape counts elements,
        also of int4.
        """
        arrays, numbers = _bind(op_type, inputs, dtypes)
        expected = _expected(op_type, out_shape, out_dtype)
        found = self._native.infer(op_type, arrays, numbers, _plain_attrs(attrs), expected)
        return [OutputSpec(tuple(shape), _BY_GE_VALUE[dtype].name) for shape, dtype in found]

    def tiling(
        self,
        op_type: str,
        inputs: Sequence[npt.ArrayLike | None],
        attrs: Mapping[str, AttrValue] | None = None,
        dtypes: Sequence[str | None] | None = None,
    ) -> Tiling:
        """Return what the operator's TilingFunc sets for a call; no kernel runs.

        Takes what `run` takes, and raises what it raises.

        Raises:
            UsageError: also where its outputs are empty, so that nothing is launched.
        """
        arrays, numbers = _bind(op_type, inputs, dtypes)
        return Tiling(*self._native.tiling(op_type, arrays, numbers, _plain_attrs(attrs)))

    def run(
        self,
        op_type: str,
        inputs: Sequence[npt.ArrayLike | None],
        attrs: Mapping[str, AttrValue] | None = None,
        dtypes: Sequence[str | None] | None = None,
        *,
        out: Sequence[_Array | None] | _Array | None = None,
        out_shape: GivenShapes | None = None,
        out_dtype: GivenDtypes | None = None,
    ) -> list[_Array]:
        """Run an operator and return its outputs.

        An output with the name of an input is that tensor, changed in place: what is returned
        begins as a copy of the input, and the input itself stays as it is unless `out` names it.

        Args:
            op_type: its OpDef class, such as `GeluCustom`.
            inputs: arrays in OpDef order, None for an absent optional one, a list of arrays for a
                dynamic one. Never written to, unless `out` holds the same array.
            attrs: by name; those left out take the OpDef's defaults.
            dtypes: dtype names of the inputs, where NumPy's own do not say it: bfloat16 is carried
                as uint16, int4 as uint8 of half the last axis, the first element in the lower four
                bits. None stands for NumPy's.
            out: C-contiguous arrays for the outputs, written and returned; one array for an
                operator of one output, else one entry an output, None for a fresh one.
            out_shape: shapes of outputs that the operator does not infer, as `out`; the operator's
                own InferShape counts first.
            out_dtype: dtype names of outputs that the operator does not infer, likewise; those of
                a combination that its OpDef lists count before what it infers.
        Returns:
            Fresh C-contiguous arrays, or those of `out`; bfloat16 as uint16, int4 as uint8.
        Raises:
            UsageError: the operator does not take these inputs or attributes, or rejects them; or
                it does not infer an output, and the call does not say it.
            SetupError: no kernel was built for these dtypes.
            KernelFault: the kernel faulted; the device can be used again.
        """
        arrays, numbers = _bind(op_type, inputs, dtypes)
        given = _given_outputs(op_type, out)
        expected = _expected(op_type, out_shape, out_dtype, given)

        def allocate(inferred: Sequence[tuple[tuple[int, ...], int]]) -> list[_Array]:
            if given and len(given) != len(inferred):
                count = len(inferred)
                raise UsageError(f"[{op_type}] has {count} outputs, but out has {len(given)}")
            # What a kernel leaves unwritten is the same in every run: zeros, or poison.
            return [
                array if array is not None else _zeros(op_type, shape, _BY_GE_VALUE[dtype])
                for (shape, dtype), array in zip(
                    inferred, given or [None] * len(inferred), strict=True
                )
            ]

        outputs: list[_Array] = self._native.run(
            op_type, arrays, numbers, _plain_attrs(attrs), expected, allocate
        )
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
    log.debug("RUNTIME", f"{path} is opened")
    return Library(path, _emulator.Library(str(path)))


def changed_inputs() -> list[str]:
    """Return the inputs that the kernel of this thread's last operator call has changed, by name.

    Looked for where the device poisons memory or checks watch; an input that is an output, too, is
    none. The arrays that were given need not show it: the kernel may have had copies.
    """
    load_emulator()
    import opkit.emulator._emulator as _emulator

    return list(_emulator.last_changed_inputs())


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
    if not is_compatible(built_by, opkit.__version__):
        raise SetupError(
            f"{folder} was built by opkit {built_by}; this is opkit {opkit.__version__}",
            help=_REBUILD,
        )
    if built_abi != abi_version:
        raise SetupError(
            f"{folder} was built for kernel ABI {built_abi}; this opkit has ABI {abi_version}",
            help=_REBUILD,
        )


def _zeros(op_type: str, shape: Sequence[int], row: DType) -> _Array:
    if row is INT4:
        if not shape or shape[-1] % 2 != 0:
            raise UsageError(
                f"[{op_type}] an int4 output of shape {tuple(shape)}: two elements share a byte",
                help="give it inputs of which the last axis of the output is even",
            )
        shape = (*shape[:-1], shape[-1] // 2)
    try:
        return zeros(shape, np.dtype(row.numpy))
    except (MemoryError, ValueError) as err:
        raise SetupError(
            f"[{op_type}] this machine has no memory for an output of shape {tuple(shape)}",
            help="give it smaller inputs, or look at its InferShape",
        ) from err


def _given_outputs(
    op_type: str, out: Sequence[_Array | None] | _Array | None
) -> list[_Array | None]:
    if out is None:
        return []
    given: list[_Array | None] = []
    given.extend([out] if isinstance(out, np.ndarray) else out)
    for index, array in enumerate(given):
        is_right = isinstance(array, np.ndarray) and array.flags.c_contiguous
        if array is not None and not (is_right and array.flags.writeable):
            raise UsageError(f"[{op_type}] out[{index}] is no C-contiguous array to be written")
    return given


def _expected(
    op_type: str,
    shapes: GivenShapes | None,
    dtypes: GivenDtypes | None,
    arrays: Sequence[_Array | None] = (),
) -> list[tuple[list[int] | None, int]]:
    """Return what the caller says of each output: its shape or None, its type's number or -1."""
    is_one_shape = shapes is not None and all(
        isinstance(item, (int, np.integer)) for item in shapes
    )
    every_shape = [shapes] if is_one_shape else list(shapes or ())
    every_dtype = [dtypes] if isinstance(dtypes, str) else list(dtypes or ())
    counts = {len(said) for said in (every_shape, every_dtype, arrays) if said}
    if len(counts) > 1:
        raise UsageError(f"[{op_type}] out, out_shape and out_dtype speak of different outputs")
    expected: list[tuple[list[int] | None, int]] = []
    for index in range(counts.pop() if counts else 0):
        shape = every_shape[index] if every_shape else None
        name = every_dtype[index] if every_dtype else None
        array = arrays[index] if arrays else None
        row = None
        if array is not None:
            shape = array.shape if shape is None else shape
            row = _dtype_of(f"[{op_type}] out[{index}]", array, name)
            if row is INT4 and not every_shape and array.ndim > 0:
                shape = (*array.shape[:-1], array.shape[-1] * 2)
        elif name is not None and (row := find_tensor_dtype(name)) is None:
            raise UsageError(f'[{op_type}] out_dtype "{name}" is not a data type of the AI core')
        dims = None if shape is None else [int(dim) for dim in cast("Sequence[int]", shape)]
        expected.append((dims, -1 if row is None else row.ge_value))
    return expected


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
    row = find_tensor_dtype(array.dtype.name if name is None else name)
    if row is None:
        given = array.dtype.name if name is None else name
        raise UsageError(
            f'{where}: "{given}" is not a data type of the AI core',
            help=f"convert the array to one of {', '.join(row.name for row in TENSOR_DTYPES)}",
        )
    # NumPy's types of that name have a byte for each element.
    names = (row.numpy,) if row is INT4 else (row.numpy, row.name)
    if array.dtype.name not in names:
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
