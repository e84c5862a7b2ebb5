"""Programs of PyPTO and Triton, inside of their sandbox: loaded, called, and what they launch
written down. No kernel is compiled here, and none runs.

What a kernel would have written is random bytes: they tell where a result goes from there, also by
way of a copy.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from opkit.chips import Chip
from opkit.dtypes import find_tensor_dtype
from opkit.errors import UsageError
from opkit.judging.entry import MARK_INTERFACE, call_program
from opkit.judging.recording import (
    NOBODYS,
    Content,
    KernelText,
    Number,
    Output,
    Recording,
    Step,
    Words,
)
from opkit.runtime import BEGIN_BYTES
from opkit.schema import OpSpec
from opkit.testing import Case, make_inputs, reference_package
from opkit.toolchain import KernelImage

__all__ = ["Program", "Recorder"]


@dataclass
class _Region:
    """Memory of this process that is a buffer of the recording."""

    begin: int
    size: int
    buffer: int
    held: bytes
    """What is known to be in it."""
    keeps: Any = None
    """What owns it, so that nothing else is put there."""


class Recorder:
    """Stands where kernels are compiled and launched."""

    def __init__(self, root: Path) -> None:
        """Take the folder of the program, which kernels name as where their lines stand."""
        self._texts: dict[str, KernelText] = {}
        self._root = root
        self._regions: list[_Region] = []
        self._sizes: list[int] = []
        self._steps: list[Step] = []
        self._random = np.random.default_rng()
        self._inputs = 0

    def install(self) -> None:
        """Have both languages' kernels come here."""
        from opkit.pypto import run_kernels_only
        from opkit.runtime import launches_go_to
        from opkit.toolchain import kernels_go_to

        kernels_go_to(self._compiled)
        launches_go_to(lambda image, *given: self.launch(self._texts[str(image.library)], *given))
        run_kernels_only()
        for module in (np, sys.modules.get("torch")):
            for name in ("empty", "empty_like") if module is not None else ():
                vars(module)[name] = _without_chance(getattr(module, name))

    def _compiled(
        self,
        source: str,
        chip: Chip,
        kernels: tuple[str, ...],
        mode: str | None,
        uses_library: bool,
        is_generated: bool,
    ) -> KernelImage:
        # The same text wherever the program lies.
        source = source.replace(f"{self._root}/", "")
        text = KernelText(kernels[0], source, mode, uses_library, is_generated)
        self._texts[text.key] = text
        return KernelImage(Path(text.key), chip, text.name)

    def begin(self, inputs: Sequence[tuple[int, int]]) -> None:
        """Forget the last case; take the inputs' memory as addresses and sizes."""
        self._regions, self._sizes, self._steps = [], [], []
        self._inputs = len(inputs)
        for address, size in inputs:
            self._region(address, size, None)

    def _region(self, begin: int, size: int, keeps: Any) -> _Region:
        region = _Region(begin, size, len(self._sizes), _read(begin, size), keeps)
        self._sizes.append(size)
        self._regions.append(region)
        return region

    def launch(self, text: KernelText, arguments: Sequence[Any], block_dim: int) -> None:
        """Write a launch down, and put other bytes where the kernel might write."""
        contents: list[Content] = []
        given: list[Words | Number | None] = []
        touched: dict[int, _Region] = {}
        for argument in arguments:
            if argument is None:
                given.append(None)
            elif isinstance(argument, np.generic | bytes):
                given.append(
                    Number(argument.tobytes() if hasattr(argument, "tobytes") else argument)
                )
            else:
                address, size = _place_of(argument)
                region = self._found(address, size, argument, contents)
                given.append(Words(region.buffer, address - region.begin, size))
                touched[region.buffer] = region
        for region in touched.values():
            if region.buffer >= self._inputs:
                region.held = self._random.bytes(region.size)
                ctypes.memmove(region.begin, region.held, region.size)
        self._steps.append(Step(text.key, block_dim, tuple(given), tuple(contents)))

    def _found(self, address: int, size: int, keeps: Any, contents: list[Content]) -> _Region:
        """Return the buffer that memory is a part of; note what the host has written to it."""
        for region in self._regions:
            if region.begin <= address and address + size <= region.begin + region.size:
                now = _read(region.begin, region.size)
                if now != region.held and region.buffer >= self._inputs:
                    contents.append(self._content(region, now))
                region.held = now
                return region
        inside = [
            each
            for each in self._regions
            if each.buffer >= self._inputs
            and each.begin < address + size
            and address < each.begin + each.size
        ]
        region = self._region(address, size, keeps)
        contents.append(self._content(region, region.held))
        for each in inside:
            # A view of it came first; what a kernel has left there is still there.
            low, high = max(each.begin, address), min(each.begin + each.size, address + size)
            if _read(low, high - low) == each.held[low - each.begin : high - each.begin]:
                contents.append(
                    Content(
                        Words(region.buffer, low - address, high - low),
                        source=Words(each.buffer, low - each.begin, high - low),
                    )
                )
            self._regions.remove(each)
        return region

    def _content(self, region: _Region, now: bytes) -> Content:
        """Return what the host has written: a copy of a tensor, one byte all over, or bytes."""
        target = Words(region.buffer, 0, region.size)
        for other in self._regions:
            if other is not region and other.size == region.size and other.held == now:
                return Content(target, source=Words(other.buffer, 0, other.size))
        if now and now.count(now[:1]) == len(now):
            return Content(target, now[:1])
        return Content(target, now)

    def kernels_of(self, recording: Recording) -> dict[str, KernelText]:
        """Return the kernels that it launches, by their keys."""
        used = sorted({step.kernel for step in recording.steps})
        return {key: self._texts[key] for key in used if key in self._texts}

    def end(self, outputs: Sequence[Any]) -> Recording:
        """Return the recording of a case whose program gave these outputs."""
        found = tuple(self._output(each) for each in outputs)
        return Recording(tuple(self._sizes), tuple(self._steps), found)

    def _output(self, value: Any) -> Output | None:
        address, shape, strides, kind = _layout(value)
        last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        size = 0 if 0 in shape else last + np.dtype(kind).itemsize
        used = {
            words.buffer
            for step in self._steps
            for words in step.arguments
            if isinstance(words, Words)
        }
        if size == 0:
            # Nothing is computed; its shape is all that there is to say.
            return Output(Words(0, 0, 0), shape, strides, kind) if self._sizes else None
        for region in self._regions:
            begin = address - region.begin
            if region.buffer in used and begin >= 0 and begin + size <= region.size:
                if _read(address, size) != region.held[begin : begin + size]:
                    return None
                return Output(Words(region.buffer, begin, size), shape, strides, kind)
        if any(step < 0 for step in strides):
            return None
        now = _read(address, size)
        for region in self._regions:
            if region.buffer in used and region.size == size and region.held == now:
                return Output(Words(region.buffer, 0, size), shape, strides, kind)
        return None


def _without_chance(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes memory that nobody has written the same in every recording."""

    @functools.wraps(make)
    def made(*arguments: Any, **named: Any) -> Any:
        found = make(*arguments, **named)
        if isinstance(found, np.ndarray):
            if not found.dtype.hasobject:
                ctypes.memset(found.ctypes.data, NOBODYS, found.nbytes)
        elif found.device.type == "npu":
            ctypes.memset(found.data_ptr(), NOBODYS, found.untyped_storage().nbytes())
        return found

    return made


def _read(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size)


def _place_of(argument: Any) -> tuple[int, int]:
    if isinstance(argument, np.ndarray):
        return int(argument.ctypes.data), int(argument.nbytes)
    address, size = argument
    return int(address), int(size)


def _layout(value: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], str]:
    """Return address, shape, strides in bytes and NumPy's data type of an array or tensor."""
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data), value.shape, value.strides, value.dtype.str
    if hasattr(value, "data_ptr"):
        name = str(value.dtype).rpartition(".")[2]
        row = find_tensor_dtype(name)
        if row is None or row.numpy is None:
            raise UsageError(f"{MARK_INTERFACE}a result of {name}, which no AI core has")
        width = np.dtype(row.numpy).itemsize
        strides = tuple(int(step) * width for step in value.stride())
        shape = tuple(int(extent) for extent in value.shape)
        return int(value.data_ptr()), shape, strides, np.dtype(row.numpy).str
    raise UsageError(f"{MARK_INTERFACE}a result is a {type(value).__name__}, and no array")


class Program:
    """A candidate's Python, loaded."""

    def __init__(self, root: Path, spec: OpSpec, *, uses_torch: bool) -> None:
        """Take the folder of its files; what it imports is there, or installed."""
        self._spec = spec
        self._uses_torch = uses_torch
        self._recorder = Recorder(root)
        self._function: Callable[..., Any] | None = None
        self._root = root
        if uses_torch:
            # Imported, torch offers the device by itself.
            reference_package("torch", wanted_by="the program").zeros(1, device="npu")
        if importlib.util.find_spec("triton") is not None:
            from opkit.triton import activate, offer

            offer()
            activate()
        self._recorder.install()

    def record(
        self, case: Case, outputs: Sequence[tuple[tuple[int, ...], str]]
    ) -> tuple[Recording, Mapping[str, KernelText]]:
        """Call the program for a case with the values of its seed; return what it launched.

        Raises:
            UsageError: it has no such function, or gives no arrays.
            Exception: what the program raises.
        """
        if self._function is None:
            self._function = self._load()
        memory: list[np.ndarray[Any, Any]] = []
        values: dict[str, Any] = {}
        for row, value, dtype in zip(
            self._spec.inputs, make_inputs(case), case.dtypes, strict=False
        ):
            given = value if isinstance(value, list) else [value]
            made = [
                None if each is None else self._input(each, dtype.name, memory) for each in given
            ]
            values[row.name] = made if isinstance(value, list) else made[0]
        for row, (shape, name) in zip(self._spec.outputs, outputs, strict=False):
            kind = find_tensor_dtype(name)
            assert kind is not None
            if row.name not in values:
                values[row.name] = self._array(np.zeros(shape, kind.numpy), name)
        values |= {name: list(v) if isinstance(v, tuple) else v for name, v in case.attrs}
        self._recorder.begin([(array.ctypes.data, array.nbytes) for array in memory])
        found = call_program(self._function, self._spec, values)
        if found is None:
            found = [values[row.name] for row in self._spec.outputs]
        results = list(found) if isinstance(found, list | tuple) else [found]
        recording = self._recorder.end(results)
        return recording, self._recorder.kernels_of(recording)

    def _input(self, value: np.ndarray[Any, Any], dtype: str, memory: list[Any]) -> Any:
        # Of memory and no array: launches look for what owns the memory of a view.
        room = (ctypes.c_uint8 * (value.nbytes + BEGIN_BYTES))()
        begin = -ctypes.addressof(room) % BEGIN_BYTES
        array: np.ndarray[Any, Any] = np.ndarray(
            value.shape,
            value.dtype,
            room,  # type: ignore[arg-type]
            begin,
        )
        array[...] = value
        made = self._array(array, dtype)
        if self._uses_torch:
            # The tensor's memory is the device's own.
            size = array.nbytes
            array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(made.data_ptr()))
        memory.append(array)
        return made

    def _array(self, array: np.ndarray[Any, Any], dtype: str) -> Any:
        if not self._uses_torch:
            return array
        torch = sys.modules["torch"]
        tensor = torch.from_numpy(array)
        return (tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor).to("npu")

    def _load(self) -> Callable[..., Any]:
        from opkit.pypto import as_pypto

        sys.path.insert(0, str(self._root))
        names = (self._spec.name, self._spec.op)
        with as_pypto():
            for module in self._modules():
                for name in names:
                    found = getattr(module, name, None)
                    if callable(found) and not isinstance(found, ModuleType):
                        function: Callable[..., Any] = found
                        return function
        raise UsageError(
            f"{MARK_INTERFACE}no function {self._spec.name} in"
            f" {', '.join(self._names()) or 'it: there is no module'}",
            help=f"def {self._spec.name}(...): its parameters go by the names of tensors",
        )

    def _names(self) -> list[str]:
        """Return what can be imported: the folder's packages, else its files."""
        packages = sorted(path.parent.name for path in self._root.glob("*/__init__.py"))
        files = sorted(path.stem for path in self._root.glob("*.py") if path.stem != "setup")
        return packages + files

    def _modules(self) -> list[ModuleType]:
        return [importlib.import_module(name) for name in self._names()]
