"""What a program of PyPTO or Triton launches for one case: kernels, memory and numbers as values.

A program's Python runs with inputs that are not the case's. What its kernels are given is recorded,
in terms of tensors: which part of which memory. The verdict is about a launch of the same kernels
on the case's own inputs, in a process that has never seen the Python. Whatever Python computes by
itself is therefore computed of other inputs, and gets nowhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from opkit.errors import UsageError
from opkit.runtime import DeviceMemory, zeros_of_bytes

__all__ = [
    "NOBODYS",
    "Content",
    "KernelText",
    "Number",
    "Output",
    "Recorded",
    "Recording",
    "Step",
    "Words",
    "join_recordings",
    "read_recording",
    "replay",
]

_MOST_BUFFERS = 4096
_MOST_STEPS = 1 << 16
_MOST_BUFFER_BYTES = 1 << 32


@dataclass(frozen=True)
class KernelText:
    """A kernel that the front end of a language has written."""

    name: str
    source: str
    mode: str | None
    uses_library: bool
    """Whether it includes the device functions of the Triton target."""
    is_generated: bool

    @property
    def key(self) -> str:
        """Its name among files."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Words:
    """An argument in global memory: a part of a buffer."""

    buffer: int
    """Numbers of inputs in order, those of a list one by one, then what the program made."""
    begin: int
    size: int


@dataclass(frozen=True)
class Number:
    """An argument that is a value."""

    data: bytes


@dataclass(frozen=True)
class Content:
    """What the host has written to a part of a buffer."""

    target: Words
    data: bytes | None = None
    """One byte for all of them, or each. None where two recordings differ: nobody's."""
    source: Words | None = None
    """A part of another buffer that was copied."""


@dataclass(frozen=True)
class Step:
    """One launch, and what was written before."""

    kernel: str
    """`KernelText.key`."""
    block_dim: int
    arguments: tuple[Words | Number | None, ...]
    contents: tuple[Content, ...] = ()


@dataclass(frozen=True)
class Output:
    """Where a result lies."""

    part: Words
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: str
    """NumPy's."""


@dataclass(frozen=True)
class Recording:
    """All launches of one case."""

    buffers: tuple[int, ...]
    """Bytes of each, inputs first."""
    steps: tuple[Step, ...]
    outputs: tuple[Output | None, ...]
    """None of a result that is no memory which a launch was given."""

    def as_plain(self) -> dict[str, Any]:
        """Return it as what goes out of a process that nobody trusts."""
        return asdict(self)


@dataclass(frozen=True)
class Recorded:
    """What two recordings of a case come to."""

    recording: Recording | None = None
    kernels: Mapping[str, KernelText] = field(default_factory=dict)
    failure: Mapping[str, Any] = field(default_factory=dict)
    """The answer of its process where there is none."""
    depends: str = ""
    """What of it follows the inputs' values, though no kernel has computed it; empty: nothing."""


def read_recording(plain: Any) -> Recording:
    """Return a recording of what a process has sent.

    Raises:
        ValueError: it is none, or something in it lies outside of its buffers.
    """
    try:
        buffers = tuple(int(size) for size in plain["buffers"])
        steps = tuple(_step(each, buffers) for each in plain["steps"])
        outputs = tuple(
            None if each is None else _output(each, buffers) for each in plain["outputs"]
        )
    except (KeyError, TypeError, AttributeError) as err:
        raise ValueError(f"no recording: {err}") from err
    if len(buffers) > _MOST_BUFFERS or len(steps) > _MOST_STEPS:
        raise ValueError(f"{len(buffers)} buffers and {len(steps)} launches are too many")
    if any(not 0 <= size <= _MOST_BUFFER_BYTES for size in buffers):
        raise ValueError("a buffer of no size")
    return Recording(buffers, steps, outputs)


def _step(plain: Any, buffers: Sequence[int]) -> Step:
    arguments: list[Words | Number | None] = []
    for each in plain["arguments"]:
        if each is None:
            arguments.append(None)
        elif "data" in each:
            arguments.append(Number(bytes(each["data"])))
        else:
            arguments.append(_words(each, buffers))
    contents = []
    for each in plain["contents"]:
        data, source = each["data"], each["source"]
        contents.append(
            Content(
                _words(each["target"], buffers),
                None if data is None else bytes(data),
                None if source is None else _words(source, buffers),
            )
        )
    return Step(str(plain["kernel"]), int(plain["block_dim"]), tuple(arguments), tuple(contents))


def _words(plain: Any, buffers: Sequence[int]) -> Words:
    found = Words(int(plain["buffer"]), int(plain["begin"]), int(plain["size"]))
    if not (
        0 <= found.buffer < len(buffers)
        and found.begin >= 0
        and found.size >= 0
        and found.begin + found.size <= buffers[found.buffer]
    ):
        raise ValueError("a part outside of its buffer")
    return found


def _output(plain: Any, buffers: Sequence[int]) -> Output:
    part = _words(plain["part"], buffers)
    shape = tuple(int(each) for each in plain["shape"])
    strides = tuple(int(each) for each in plain["strides"])
    kind = np.dtype(str(plain["dtype"]))
    if len(shape) != len(strides) or min((*shape, *strides, 0)) < 0 or kind.hasobject:
        raise ValueError("an output of no shape")
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    if 0 not in shape and last + kind.itemsize > part.size:
        raise ValueError("an output outside of its buffer")
    return Output(part, shape, strides, kind.str)


def join_recordings(first: Recording, second: Recording) -> tuple[Recording | None, str]:
    """Return what two recordings with other inputs have in common, and what differs.

    What the host has written and differs is no content. All else that differs has no meaning
    without the inputs' values: there is no recording then.
    """
    if len(first.steps) != len(second.steps):
        return None, f"{len(first.steps)} launches, or {len(second.steps)}"
    if first.buffers != second.buffers or first.outputs != second.outputs:
        return None, "which memory it takes"
    steps, depends = [], ""
    for one, other in zip(first.steps, second.steps, strict=True):
        if (one.kernel, one.block_dim, one.arguments) != (
            other.kernel,
            other.block_dim,
            other.arguments,
        ):
            return None, "the kernels, their blocks or their numbers"
        if [each.target for each in one.contents] != [each.target for each in other.contents]:
            return None, "when the host writes to its memory"
        contents = []
        for mine, theirs in zip(one.contents, other.contents, strict=True):
            same = mine == theirs
            contents.append(mine if same else Content(mine.target))
            if not same:
                depends = "what the host has written to memory of a kernel"
        steps.append(Step(one.kernel, one.block_dim, one.arguments, tuple(contents)))
    return Recording(first.buffers, tuple(steps), first.outputs), depends


NOBODYS = 0xCD
"""What every byte holds that neither the host nor a kernel has written."""


def replay(
    recording: Recording, inputs: Sequence[np.ndarray[Any, Any]], kernels: Mapping[str, Any]
) -> list[np.ndarray[Any, Any]]:
    """Launch what was recorded on a case's inputs, which may be written to; return the outputs.

    Args:
        inputs: their memory, which is used where it lies.
        kernels: `opkit.runtime.Kernel` by the keys of their texts.
    Raises:
        UsageError: the case's inputs are of other sizes than those of the recording.
        KernelFault: a kernel did what the chip does not allow.
    """
    sizes = [array.nbytes for array in inputs]
    if list(recording.buffers[: len(sizes)]) != sizes:
        raise UsageError("its inputs are of other sizes than those that it was recorded with")
    memory = [array.reshape(-1).view(np.uint8) for array in inputs]
    for size in recording.buffers[len(sizes) :]:
        made = zeros_of_bytes(size)
        made[...] = NOBODYS
        memory.append(made)
    for step in recording.steps:
        for content in step.contents:
            _write(content, memory)
        arguments = [_argument(each, memory) for each in step.arguments]
        kernels[step.kernel].launch(arguments, step.block_dim)
    found = []
    for output in recording.outputs:
        if output is None:
            found.append(np.empty(0, np.uint8))
            continue
        part, kind = output.part, np.dtype(output.dtype)
        view: np.ndarray[Any, Any] = np.ndarray(
            output.shape, kind, memory[part.buffer].data, part.begin, output.strides
        )
        found.append(np.ascontiguousarray(view))
    return found


def _write(content: Content, memory: Sequence[np.ndarray[Any, Any]]) -> None:
    place = content.target
    target = memory[place.buffer][place.begin : place.begin + place.size]
    if content.source is not None:
        source = content.source
        target[...] = memory[source.buffer][source.begin : source.begin + place.size]
    elif content.data is None:
        target[...] = NOBODYS
    else:
        target[...] = np.frombuffer(content.data, np.uint8)


def _argument(argument: Words | Number | None, memory: Sequence[np.ndarray[Any, Any]]) -> Any:
    if argument is None:
        return None
    if isinstance(argument, Number):
        return argument.data
    # An address behind the last byte is one, too.
    address = memory[argument.buffer].ctypes.data + argument.begin
    return DeviceMemory(address, argument.size)
