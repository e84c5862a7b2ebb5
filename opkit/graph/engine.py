"""Model files, and running them: needs NumPy and the emulator, no torch."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.bfloat16 import bfloat16_to_float32
from opkit.chips import find_chip
from opkit.compiler import to_storage
from opkit.dtypes import find_dtype
from opkit.errors import SetupError, UsageError
from opkit.files import write_aside
from opkit.folders import cache_folder, filling_cache
from opkit.graph.plan import Plan, PlanTensor
from opkit.graph.running import Runner

if TYPE_CHECKING:
    from opkit.toolchain import KernelImage

__all__ = ["Context", "Engine", "Model", "ModelInput"]

FORMAT = "opkit model"
VERSION = 1
_DESCRIPTION, _WEIGHTS = "model.json", "weights.safetensors"


@dataclass(frozen=True)
class ModelInput:
    """What a run is given for one input."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """What kernels read: what is given is converted to it, fractions to fractions, whole numbers
    to whole numbers."""
    rows: int = 0
    """Rows of the table that these are indices of; 0: they are no indices."""


@dataclass(frozen=True)
class Model:
    """A whole model for one chip and fixed shapes: kernels, weights, plan."""

    chip: str
    precision: str
    inputs: tuple[ModelInput, ...]
    plan: Plan
    images: tuple[KernelImage, ...] = field(repr=False)
    constants: tuple[Any, ...] = field(repr=False)
    """Arrays in the plan's order; bfloat16 as uint16."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """What each product computes in, where it is not the model's own precision."""

    def create_context(self) -> Context:
        """Return something that runs the model; several run at a time."""
        return Engine._of(self).create_context()

    def save(self, path: Path | str) -> None:
        """Write one file: a zip of JSON, safetensors and shared objects.

        It is written under another name first, so that a reader finds a whole file or none.

        Raises:
            SetupError: the library safetensors is missing, or the file cannot be written.
        """
        target = Path(path)
        files = [image.library.read_bytes() for image in self.images]
        names = [f"kernels/{hashlib.sha256(data).hexdigest()}.so" for data in files]
        arrays = {f"c{index}": array for index, array in enumerate(self.constants)}
        weights: bytes = _safetensors().save(arrays)
        members = {_WEIGHTS: weights, **dict(zip(names, files, strict=True))}
        document = {
            "format": FORMAT,
            "version": VERSION,
            "chip": self.chip,
            "npu_arch": find_chip(self.chip).npu_arch,
            "precision": self.precision,
            "inputs": [vars(each) for each in self.inputs],
            "plan": self.plan.to_json(names),
            "notes": [dict(note) for note in self.notes],
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        }
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {_DESCRIPTION: json.dumps(document).encode(), **members}.items():
                # The same model is the same file, whenever it is written.
                archive.writestr(zipfile.ZipInfo(name), data)
        try:
            write_aside(target, stream.getvalue())
        except OSError as err:
            raise SetupError(f"{target} cannot be written: {err.strerror or err}") from err


class Engine:
    """A model file, loaded: kernels and weights, shared by all contexts.

    A model file holds machine code: open only those that you would also run as programs.
    """

    def __init__(self, path: Path | str) -> None:
        """Load a file that `Model.save` wrote.

        Raises:
            UsageError: there is no such file, it is none of opkit's, damaged, of another version,
                or for another kind of chip than the configured one.
            SetupError: its kernels were made by another version of opkit.
        """
        self._take(_read(Path(path)))

    @staticmethod
    def _of(model: Model) -> Engine:
        engine = Engine.__new__(Engine)
        engine._take(model)
        return engine

    def _take(self, model: Model) -> None:
        self.model = model
        self._runner = Runner(model.plan, model.images)

    @property
    def inputs(self) -> tuple[ModelInput, ...]:
        """What a run takes."""
        return self.model.inputs

    @property
    def outputs(self) -> tuple[PlanTensor, ...]:
        """What a run returns."""
        return self.model.plan.outputs

    def create_context(self) -> Context:
        """Return something that runs the model, with memory of its own for what lies in between."""
        return Context(self.model, self._runner)


class Context:
    """Runs of one model, one after the other; contexts of an engine run side by side."""

    def __init__(self, model: Model, runner: Runner) -> None:
        self._model, self._runner = model, runner
        try:
            self._arena = np.empty(max(1, model.plan.arena_bytes), np.uint8)
        except (MemoryError, ValueError, OverflowError) as err:
            raise UsageError(
                f"the model needs {model.plan.arena_bytes} bytes at once, which there are not"
            ) from err
        self._constants = [array.ctypes.data for array in model.constants]
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        """Return the outputs as arrays, bfloat16 as float32.

        Args:
            inputs: arrays in order, or by name.
        Raises:
            UsageError: one is missing, unknown, or has another shape or kind than the model's.
            KernelFault: a kernel faulted.
        """
        given = [_converted(each, a) for each, a in zip(*self._named(inputs), strict=True)]
        plan = self._model.plan
        outputs = [_empty(tensor) for tensor in plan.outputs]
        with self._lock:
            self._runner.run(
                [array.ctypes.data for array in given],
                [array.ctypes.data for array in outputs],
                self._constants,
                self._arena.ctypes.data,
            )
        return [
            bfloat16_to_float32(array) if tensor.dtype == "bfloat16" else array
            for array, tensor in zip(outputs, plan.outputs, strict=True)
        ]

    def _named(
        self, inputs: Sequence[Any] | Mapping[str, Any]
    ) -> tuple[tuple[ModelInput, ...], list[Any]]:
        wanted = self._model.inputs
        names = [each.name for each in wanted]
        if isinstance(inputs, Mapping):
            wrong = [name for name in names if name not in inputs]
            wrong += [name for name in inputs if name not in names]
            if wrong:
                raise UsageError(f'the model takes {", ".join(names)}: "{wrong[0]}" is not right')
            return wanted, [inputs[name] for name in names]
        if len(inputs) != len(wanted):
            raise UsageError(
                f"the model takes {len(wanted)} inputs ({', '.join(names)}), not {len(inputs)}"
            )
        return wanted, list(inputs)


def _converted(wanted: ModelInput, value: Any) -> Any:
    array = np.asarray(value)
    if array.shape != wanted.shape:
        raise UsageError(
            f'"{wanted.name}" has the shape {array.shape}, and the model was built for'
            f" {wanted.shape}",
            help="build a model for each shape, or pad to it",
        )
    if wanted.dtype == "bfloat16" and array.dtype == np.uint16:
        return np.asarray(array, order="C")
    if "float" in wanted.dtype:
        if array.dtype.kind != "f":
            raise UsageError(f'"{wanted.name}" has {array.dtype}, expected fractions')
        return np.asarray(to_storage(array, wanted.dtype), order="C")
    if array.dtype.kind not in "iub":
        raise UsageError(f'"{wanted.name}" has {array.dtype}, expected {wanted.dtype}')
    if wanted.rows and array.size and (array.min() < 0 or array.max() >= wanted.rows):
        raise UsageError(
            f'"{wanted.name}" holds {array.min()} to {array.max()}, indices of {wanted.rows} rows'
        )
    limits = (0, 1) if wanted.dtype == "bool" else _limits(wanted.dtype)
    if array.size and (int(array.min()) < limits[0] or int(array.max()) > limits[1]):
        raise UsageError(f'"{wanted.name}" holds numbers that {wanted.dtype} does not')
    return np.asarray(array.astype(wanted.dtype), order="C")


def _limits(dtype: str) -> tuple[int, int]:
    found = np.iinfo(dtype)
    return int(found.min), int(found.max)


def _empty(tensor: PlanTensor) -> Any:
    row = find_dtype(tensor.dtype)
    assert row is not None and row.numpy is not None
    return np.empty(tensor.shape, row.numpy)


def _read(path: Path) -> Model:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as err:
        raise UsageError(
            f"{path} is no model file, or a damaged one: {err}", help="write it again: Model.save"
        ) from err
    try:
        document = json.loads(members[_DESCRIPTION])
        if document["format"] != FORMAT:
            raise KeyError("format")
    except (KeyError, TypeError, ValueError, RecursionError):
        raise UsageError(
            f"{path} is no model file of opkit's: it describes none in {_DESCRIPTION}"
        ) from None
    if document.get("version") != VERSION:
        raise UsageError(
            f"{path} has version {document.get('version')} of the format, this opkit reads"
            f" {VERSION}",
            help="build the model again",
        )
    try:
        return _model(path, document, members)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        raise UsageError(f"{path} is damaged: its description lacks or mixes up {err}") from err


def _model(path: Path, document: Mapping[str, Any], members: Mapping[str, bytes]) -> Model:
    for name, digest in document["sha256"].items():
        if name not in members or hashlib.sha256(members[name]).hexdigest() != digest:
            raise UsageError(
                f"{path} is damaged: {name} is not what was written", help="write it again"
            )
    used = {_WEIGHTS, *(kernel["file"] for kernel in document["plan"]["kernels"])}
    if unknown := sorted(used - set(document["sha256"])):
        raise UsageError(f"{path} is damaged: it does not say what {unknown[0]} is to be")
    _check_chip(path, document)
    plan = Plan.from_json(document["plan"])
    arrays = _safetensors().load(members[_WEIGHTS])
    constants = []
    for index, tensor in enumerate(plan.constants):
        array = np.asarray(arrays[f"c{index}"], order="C")
        if array.nbytes != tensor.size_bytes or array.shape != tensor.shape:
            raise UsageError(f"{path} is damaged: the weight {tensor.name} has another size")
        constants.append(array)
    from opkit.toolchain import open_image

    images = [
        open_image(_placed(members[kernel["file"]]), document["chip"])
        for kernel in document["plan"]["kernels"]
    ]
    inputs = tuple(
        ModelInput(str(d["name"]), tuple(d["shape"]), str(d["dtype"]), int(d["rows"]))
        for d in document["inputs"]
    )
    if [(i.shape, i.dtype) for i in inputs] != [(t.shape, t.dtype) for t in plan.inputs]:
        raise UsageError(f"{path} is damaged: its inputs are not those of its plan")
    return Model(
        str(document["chip"]),
        str(document["precision"]),
        inputs,
        plan,
        tuple(images),
        tuple(constants),
        tuple(document["notes"]),
    )


def _check_chip(path: Path, document: Mapping[str, Any]) -> None:
    from opkit.runtime import configuration

    device = find_chip(configuration().chip)
    if document["npu_arch"] != device.npu_arch:
        raise UsageError(
            f"{path} was built for the {document['chip']} ({document['npu_arch']}), and the device"
            f" is an {device.name} ({device.npu_arch})",
            help=f'build it with chip="{device.name}", or runtime.configure("{document["chip"]}")',
        )
    if find_chip(str(document["chip"])).npu_arch != document["npu_arch"]:
        raise UsageError(f"{path} is damaged: no {document['chip']} has {document['npu_arch']}")


def _placed(data: bytes) -> Path:
    """Return a file with a shared object's bytes, from where it can be loaded."""
    digest = hashlib.sha256(data).hexdigest()
    library = cache_folder() / "models" / digest[:2] / f"{digest}.so"
    if not library.exists() or library.stat().st_size != len(data):
        with filling_cache(library.parent):
            write_aside(library, data, mode=0o755)
    return library


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ModuleNotFoundError as err:
        raise SetupError(
            "model files need the library safetensors",
            help='install it with "pip install opkit[graph]"',
        ) from err
    return safetensors.numpy
