"""Direct-launch candidates, inside of their sandbox: built, and launched with what they queue.

A candidate's host code runs before the inputs are there. What it queues on its stream is captured;
then the inputs are filled in and the outputs with other bytes, and the captured tasks run. So host
code sees neither inputs nor results, whatever it does, and what it wrote to outputs is gone.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from opkit.chips import find_chip
from opkit.dtypes import find_tensor_dtype
from opkit.errors import FAULT_IDS, BuildError, KernelFault, OperatorError, UsageError
from opkit.judging.entry import MARK_INTERFACE, WORKSPACE_BYTES, Entry, find_entry
from opkit.judging.kinds import LAUNCHING_SUFFIXES, launching_sources
from opkit.schema import OpSpec
from opkit.testing import Case, make_inputs
from opkit.toolchain import (
    assembly_log,
    build_launching_library,
    named_texts,
    parse_driver_arguments,
    pastes_tokens,
    run_driver,
)

__all__ = ["LIBRARY", "DirectLibrary", "build_direct"]

LIBRARY = "libcandidate.so"
_UNWRITTEN = 0xCD
"""What every byte of an output holds that no launch writes."""
_STREAM_NUMBER = 1
_RELAXED = 2  # ACL_MODEL_RI_CAPTURE_MODE_RELAXED
_MOST_TEXT = 1 << 14
_FAULT = re.compile(r"(?P<id>[\w-]+): (?P<text>.*) \((?P<file>.*):(?P<line>\d+), kernel ", re.S)


def build_direct(spec: OpSpec, chip: str, root: Path, out: Path) -> None:
    """Build a candidate's sources: those that launch, and the one with the entry.

    Raises:
        UsageError: there is no entry, or it takes what the operator does not have.
        BuildError: they do not compile.
    """
    texts = _texts(root)
    entry = find_entry(texts, spec)
    launching = launching_sources((name, text.encode()) for name, text in texts.items())
    defines = [name for name, text in texts.items() if re.search(rf"\b{entry.name}\s*\(", text)]
    names = dict.fromkeys(
        name for name in (*launching, *defines) if name.endswith(LAUNCHING_SUFFIXES)
    )
    out.mkdir(exist_ok=True)
    sources = [root / name for name in names]
    build_launching_library(sources, find_chip(chip), root=root, output=out / LIBRARY)
    if pastes_tokens(texts.items()):
        # Macros may make words of parts.
        for source in sources:
            log = assembly_log(_preprocessed(source, chip, root))
            if log:
                raise BuildError(log.strip(), log=log)


def _preprocessed(source: Path, chip: str, root: Path) -> list[tuple[str, str]]:
    """Return what a preprocessor makes of a source, but for what is not the candidate's."""
    argv = [f"--npu-arch={find_chip(chip).npu_arch}", "-E", "-I", str(root), "-x", "asc"]
    text = run_driver(parse_driver_arguments([*argv, str(source)])).output
    own = [part for part in named_texts(text, [], root) if Path(part[0]).is_relative_to(root)]
    return [(str(Path(name).relative_to(root)), part) for name, part in own]


def _texts(root: Path) -> dict[str, str]:
    suffixes = (*LAUNCHING_SUFFIXES, ".h", ".hpp")
    files = sorted(path for path in root.rglob("*") if path.suffix in suffixes)
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8", errors="replace")
        for path in files
    }


@dataclass
class _Tensor:
    """A tensor of a launch in the device's memory."""

    name: str
    address: int
    shape: tuple[int, ...]
    size_bytes: int
    dtype_number: int
    begin: np.ndarray[Any, Any] | None
    """What an input holds; None of an output."""


class DirectLibrary:
    """A candidate's library, loaded."""

    def __init__(self, folder: Path, sources: Path, spec: OpSpec) -> None:
        """Load it.

        Raises:
            UsageError: its entry is no function of C.
        """
        from opkit.runtime import load_emulator

        self._acl = load_emulator()
        self._acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self._acl.opkit_device_stream.restype = ctypes.c_void_p
        self._acl.opkit_take_device_fault.restype = ctypes.c_bool
        self._stream = ctypes.c_void_p(self._acl.opkit_device_stream(_STREAM_NUMBER))
        self._spec = spec
        self._entry: Entry = find_entry(_texts(sources), spec)
        library = ctypes.CDLL(str(folder / LIBRARY))
        try:
            self._function = getattr(library, self._entry.name)
        except AttributeError as err:
            raise UsageError(
                f'{MARK_INTERFACE}{self._entry.name} is no function of C: extern "C" is missing'
            ) from err
        self._function.restype = None
        self._workspace = self._memory(WORKSPACE_BYTES)

    def ready(
        self, case: Case, outputs: Sequence[tuple[tuple[int, ...], str]]
    ) -> Callable[[], tuple[list[np.ndarray[Any, Any]], list[str]]]:
        """Queue a case's launches, fill its inputs in, and return what runs them.

        What it returns gives the outputs, and the names of the inputs that were changed.

        Args:
            outputs: shape and data type of each.
        Raises:
            UsageError: the case has a list of tensors, for which an entry has no parameter.
        """
        tensors = self._tensors(case, outputs)
        model = self._captured(tensors, dict(case.attrs))
        for tensor in tensors.values():
            if tensor.begin is None:
                ctypes.memset(tensor.address, _UNWRITTEN, tensor.size_bytes)
            else:
                ctypes.memmove(tensor.address, tensor.begin.ctypes.data, tensor.size_bytes)

        def run() -> tuple[list[np.ndarray[Any, Any]], list[str]]:
            self._execute(model)
            names = [tensor.name for tensor in self._spec.outputs]
            found = [
                self._read(tensors[name], shape, dtype)
                for name, (shape, dtype) in zip(names, outputs, strict=True)
            ]
            changed = [
                name
                for name, tensor in tensors.items()
                if tensor.begin is not None
                and name not in names
                and ctypes.string_at(tensor.address, tensor.size_bytes) != tensor.begin.tobytes()
            ]
            self._acl.aclmdlRIDestroy(model)
            for tensor in tensors.values():
                if tensor.address:
                    self._acl.aclrtFree(ctypes.c_void_p(tensor.address))
            return found, changed

        return run

    def _tensors(
        self, case: Case, outputs: Sequence[tuple[tuple[int, ...], str]]
    ) -> dict[str, _Tensor]:
        found: dict[str, _Tensor] = {}
        inputs = make_inputs(case)
        for row, value, dtype in zip(self._spec.inputs, inputs, case.dtypes, strict=False):
            if isinstance(value, list):
                raise UsageError(f"{MARK_INTERFACE}{row.name} is a list of tensors")
            if value is None:
                found[row.name] = _Tensor(row.name, 0, (), 0, dtype.ge_value, np.empty(0))
                continue
            array = np.ascontiguousarray(value)
            address = self._memory(array.nbytes)
            ctypes.memset(address, _UNWRITTEN, array.nbytes)
            found[row.name] = _Tensor(
                row.name, address, value.shape, array.nbytes, dtype.ge_value, array
            )
        for row, (shape, name) in zip(self._spec.outputs, outputs, strict=True):
            kind = find_tensor_dtype(name)
            assert kind is not None
            size = prod(shape) * np.dtype(kind.numpy).itemsize
            if row.name not in found:
                address = self._memory(size)
                found[row.name] = _Tensor(row.name, address, shape, size, kind.ge_value, None)
        return found

    def _memory(self, size: int) -> int:
        pointer = ctypes.c_void_p()
        # Freed memory is never given again: it is what a kernel must not touch.
        self._check(self._acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(max(32, size)), 0))
        return int(pointer.value or 0)

    def _captured(self, tensors: Mapping[str, _Tensor], attrs: Mapping[str, Any]) -> Any:
        known, kept = self._values(tensors, attrs)
        arguments = [
            ctypes.c_void_p(known[each.name])
            if each.kind == "pointer"
            else getattr(ctypes, each.kind)(known[each.name])
            for each in self._entry.parameters
        ]
        model = ctypes.c_void_p()
        self._check(self._acl.aclmdlRICaptureBegin(self._stream, _RELAXED))
        self._function(*arguments)
        self._check(self._acl.aclmdlRICaptureEnd(self._stream, ctypes.byref(model)))
        # What pointers of the host lead to may be read by captured copies.
        self._kept = kept
        return model

    def _values(
        self, tensors: Mapping[str, _Tensor], attrs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Any]]:
        """Return what each name stands for, and the memory of the host behind it."""
        known: dict[str, Any] = {"stream": self._stream.value, "workspace": self._workspace}
        known["workspace_bytes"] = WORKSPACE_BYTES
        kept: list[Any] = []

        def address(array: np.ndarray[Any, Any]) -> int:
            kept.append(array)
            return int(array.ctypes.data)

        for name, tensor in tensors.items():
            known |= {
                name: tensor.address,
                f"{name}_elements": prod(tensor.shape) if tensor.address else 0,
                f"{name}_bytes": tensor.size_bytes,
                f"{name}_rank": len(tensor.shape),
                f"{name}_shape": address(np.array([*tensor.shape, 0], np.int64)),
                f"{name}_dtype": tensor.dtype_number,
            }
        for attr in self._spec.attrs:
            value = attrs.get(attr.name, attr.default)
            if attr.type == "string":
                text = str(value or "").encode()
                known[attr.name] = address(np.frombuffer(text + b"\0", np.uint8))
                known[f"{attr.name}_count"] = len(text)
            elif attr.type.startswith("list"):
                kind = np.float32 if attr.type.endswith("float") else np.int64
                numbers = np.array([*(value or ()), 0], kind)
                known[attr.name] = address(numbers)
                known[f"{attr.name}_count"] = numbers.size - 1
            else:
                known[attr.name] = value if value is not None else 0
        return known, kept

    def _execute(self, model: Any) -> None:
        error = self._acl.aclmdlRIExecuteAsync(model, self._stream)
        text = ctypes.create_string_buffer(_MOST_TEXT)
        if self._acl.opkit_take_device_fault(text, ctypes.c_size_t(_MOST_TEXT)):
            raise _fault(text.value.decode(errors="replace"))
        self._check(error)

    def _check(self, error: int) -> None:
        if error:
            said = self._acl.aclGetRecentErrMsg() or b""
            raise OperatorError(said.decode(errors="replace") or f"the runtime says {error}")

    def _read(self, tensor: _Tensor, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        kind = find_tensor_dtype(dtype)
        assert kind is not None
        data = ctypes.string_at(tensor.address, tensor.size_bytes)
        return np.frombuffer(data, np.dtype(kind.numpy)).reshape(shape)


_CATEGORIES = {id: category for category, id in FAULT_IDS.items()}


def _fault(text: str) -> Exception:
    """Return what a stream says of a launch that failed as the fault that it is."""
    match = _FAULT.match(text)
    if match is None:
        return OperatorError(text)
    category = _CATEGORIES.get(match["id"], match["id"])
    return KernelFault(
        match["text"], category=category, file=Path(match["file"]), line=int(match["line"])
    )
