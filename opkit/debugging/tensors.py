"""Tensors by the names that a launch and its source give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opkit.debugging.recording import Instruction, Operand, Recording, spaces
from opkit.debugging.source_names import source_file
from opkit.dtypes import DType, find_dtype
from opkit.errors import UsageError
from opkit.schema import nearest
from opkit.testing import widen

__all__ = ["Names", "Tensor", "parse_place", "values_of"]

_PLACE = re.compile(
    r"^(?P<space>GM|UB|L1|L0A|L0B|L0C|BT|FB):(?P<offset>0x[0-9a-fA-F]+|\d+)"
    r"(?::(?P<dtype>\w+))?(?::(?P<count>\d+))?$"
)


@dataclass(frozen=True)
class Tensor:
    """Elements of one memory."""

    name: str
    space: str
    address: int
    """In GM that of the recorded process."""
    count: int
    dtype: DType
    core: int
    """Whose memory; of no meaning in GM."""
    shape: tuple[int, ...] = ()
    """Empty where only the number of elements is known."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self.count * self.dtype.size_bytes

    @property
    def end(self) -> int:
        """Address of the byte behind it."""
        return self.address + self.size_bytes

    @property
    def place(self) -> str:
        """As `parse_place` takes it: what it means does not change with the instruction."""
        return f"{self.space}:{self.address}:{self.dtype.name}:{self.count}"

    def part(self, start: int, stop: int) -> Tensor:
        """Return elements [start, stop)."""
        address = self.address + start * self.dtype.size_bytes
        return replace(self, address=address, count=max(0, stop - start), shape=())


def values_of(recording: Recording, tensor: Tensor, step: int) -> NDArray[np.float64] | None:
    """Return a tensor's elements before an instruction, floats as float64; None: not known."""
    raw = recording.read(
        step, tensor.space, tensor.address, tensor.size_bytes, core=max(tensor.core, 0)
    )
    if raw is None:
        return None
    return widen(np.frombuffer(raw, tensor.dtype.numpy), tensor.dtype)


class Names:
    """What the names in a launch mean, at any instruction of any core."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.tensors: dict[str, Tensor] = {}
        """Tensors of global memory whose type and shape somebody has told."""

    def tell(self, name: str, dtype: DType, shape: tuple[int, ...]) -> None:
        """Say what an input or output is made of."""
        for found in self.recording.ranges:
            if found.short_name == name and found.name != found.short_name:
                count = int(np.prod(shape, dtype=np.int64))
                self.tensors[name] = Tensor(name, "GM", found.begin, count, dtype, -1, shape)

    def told_at(self, address: int) -> Tensor | None:
        """Return the input or output that begins at an address of global memory."""
        return next((t for t in self.tensors.values() if t.address == address), None)

    @cached_property
    def _by_site(self) -> dict[tuple[int, int], tuple[str, ...]]:
        return {}

    def operand_texts(self, step: int) -> tuple[str, ...]:
        """Return what the source calls an instruction's operands, the destination first."""
        recording = self.recording
        key = (int(recording.site_of[step]), int(recording.op_of[step]))
        if key not in self._by_site:
            file, line = recording.sites[key[0]]
            op = recording.op_names[key[1]]
            source = source_file(file)
            if op in ("GetValue", "SetValue"):
                self._by_site[key] = tuple(filter(None, (source.element_name(line),)))
            else:
                self._by_site[key] = source.operand_names(line, op)
        return self._by_site[key]

    @cached_property
    def _named_sites(self) -> dict[str, NDArray[np.int64]]:
        """The instructions in which a name stands for an operand."""
        recording = self.recording
        pairs = np.stack([recording.site_of.astype(np.int64), recording.op_of.astype(np.int64)])
        keys = pairs[0] << 16 | pairs[1]
        found: dict[str, list[NDArray[np.int64]]] = {}
        order = np.argsort(keys, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(keys) else []
        for group in groups:
            for text in self.operand_texts(int(group[0]))[:4]:
                name = _base(text)
                if name:
                    found.setdefault(name, []).append(group)
        return {name: np.sort(np.concatenate(groups)) for name, groups in found.items()}

    @cached_property
    def _queue_names(self) -> dict[tuple[int, str, int], tuple[str, int]]:
        """The queue or buffer, and which of its slots, by core, memory and address."""
        recording = self.recording
        names = {}
        for buffer in recording.buffers:
            file, line = recording.sites[buffer.site]
            name = source_file(file).buffer_name(line)
            if name:
                names[(buffer.core, buffer.space, buffer.address)] = (name, buffer.slot)
        return names

    @cached_property
    def _taken(self) -> dict[tuple[int, str], list[tuple[int, str, int]]]:
        """What AllocTensor and DeQue gave names of the source: (step, memory, address), by core."""
        found: dict[tuple[int, str], list[tuple[int, str, int]]] = {}
        for event in self.recording.events:
            if event["action"] not in ("AllocTensor", "DeQue"):
                continue
            file, line = self.recording.sites[event["site"]]
            _, _, name = source_file(file).queue_call(line)
            if name:
                taken = (event["step"], event["space"], event["address"])
                found.setdefault((event["core"], name), []).append(taken)
        return found

    def known(self, core: int) -> list[str]:
        """Return the names that `find` takes on a core."""
        recording = self.recording
        names = [r.short_name for r in recording.ranges if r.name]
        steps = self._named_sites
        names += [n for n, at in steps.items() if (recording.core_of[at] == core).any()]
        names += [name for owner, name in self._taken if owner == core]
        names += [name for (owner, _, _), (name, _) in self._queue_names.items() if owner == core]
        return list(dict.fromkeys(names))

    def find(self, name: str, step: int, core: int) -> Tensor:
        """Return what a name means before an instruction of a core.

        A name of the source means what it meant when an instruction of this core named it last, or
        will name it first. `queue[n]` of a queue or buffer is its n-th slot.

        Raises:
            UsageError: nothing has this name.
        """
        place = parse_place(name, core)
        if place is not None:
            return place
        if name in self.tensors:
            return self.tensors[name]
        steps = self._named_sites.get(name)
        if steps is not None:
            mine = steps[self.recording.core_of[steps] == core]
            at = int(np.searchsorted(mine, step))
            # The instruction that is next names its operands, too.
            if at < len(mine) and mine[at] == step:
                at += 1
            if len(mine):
                found = self._named_operand(name, int(mine[max(at - 1, 0)]))
                if found is not None:
                    return found
        taken = self._taken.get((core, name))
        if taken is not None:
            before = [one for one in taken if one[0] <= step]
            _, space, address = before[-1] if before else taken[0]
            return self._buffer_tensor(name, core, space, address, step)
        for known in self.recording.ranges:
            if name in (known.name, known.short_name):
                return self._range_tensor(known.short_name, known.begin, known.size_bytes)
        for (owner, space, address), (queue, slot) in self._queue_names.items():
            if owner == core and name in (queue, f"{queue}#{slot}"):
                return self._buffer_tensor(name, core, space, address, step)
        near = nearest(name, self.known(core))
        raise UsageError(
            f'core {core} has no tensor "{name}"',
            help=f'did you mean "{near}"?' if near else '"tensors" lists the names',
        )

    def _named_operand(self, name: str, step: int) -> Tensor | None:
        instruction = self.recording.instruction(step)
        operands = _operands(instruction)
        for text, (number, operand) in zip(
            self.operand_texts(step), enumerate(operands), strict=False
        ):
            if operand is None or _base(text) != name:
                continue
            return self._operand_tensor(name, text, number, operand, instruction)
        return None

    def _operand_tensor(
        self, name: str, text: str, number: int, operand: Operand, instruction: Instruction
    ) -> Tensor:
        if operand.space == "GM":
            known = self.recording.range_at(operand.address)
            if known is not None:
                told = self.tensors.get(known.short_name)
                if told is not None and told.dtype.size_bytes == operand.dtype.size_bytes:
                    count, shape = told.count, told.shape
                else:
                    count, shape = known.size_bytes // operand.dtype.size_bytes, ()
                return Tensor(name, "GM", known.begin, count, operand.dtype, -1, shape)
        pieces = [p for p in instruction.pieces if p.operand == number]
        end = max((piece.end for piece in pieces), default=operand.end)
        # With an offset the name itself begins somewhere before; the buffer's start is known.
        begin = operand.begin if "[" in text else operand.address
        begin = min(begin, operand.address)
        count = max(0, end - begin) // operand.dtype.size_bytes
        return Tensor(name, operand.space, begin, count, operand.dtype, instruction.core)

    def _range_tensor(self, name: str, begin: int, size_bytes: int) -> Tensor:
        """A range of global memory in the type that instructions use it with."""
        recording = self.recording
        space, first, last = recording.hulls
        writers = np.flatnonzero((space == 0) & (last > begin) & (first < begin + size_bytes))
        dtype = find_dtype("uint8")
        if len(writers):
            dst = recording.instruction(int(writers[0])).dst
            dtype = dst.dtype if dst is not None else dtype
        else:
            dtype = self._read_type(begin, size_bytes) or dtype
        assert dtype is not None
        return Tensor(name, "GM", begin, size_bytes // dtype.size_bytes, dtype, -1)

    def _read_type(self, begin: int, size_bytes: int) -> DType | None:
        names = self.recording.op_names
        copies = [n for n, name in enumerate(names) if name.startswith(("DataCopy", "GetValue"))]
        _, sites = np.unique(self.recording.site_of, return_index=True)
        for step in sites:
            if self.recording.op_of[step] not in copies:
                continue
            for source in self.recording.instruction(int(step)).sources:
                if source.space == "GM" and begin <= source.address < begin + size_bytes:
                    return source.dtype
        return None

    def _buffer_tensor(self, name: str, core: int, space: str, address: int, step: int) -> Tensor:
        buffer = next(
            b
            for b in self.recording.buffers
            if (b.core, b.space, b.address) == (core, space, address)
        )
        dtype = find_dtype("uint8")
        recording = self.recording
        where, first, last = recording.hulls
        mine = (recording.core_of == core) & (where == spaces().index(space))
        writers = np.flatnonzero(mine & (last > address) & (first < address + buffer.size_bytes))
        if len(writers):
            at = int(np.searchsorted(writers, step)) - 1
            dst = recording.instruction(int(writers[max(at, 0)])).dst
            dtype = dst.dtype if dst is not None else dtype
        assert dtype is not None
        return Tensor(name, space, address, buffer.size_bytes // dtype.size_bytes, dtype, core)

    def place_text(self, core: int, space: str, begin: int, size_bytes: int, step: int) -> str:
        """Return what bytes are called, such as `x[1234]`, `xQueue#0+64` or `UB:128`."""
        if space == "GM":
            known = self.recording.range_at(begin)
            if known is None:
                return f"GM:{begin:#x}"
            told = self.tensors.get(known.short_name) or self._range_tensor(
                known.short_name, known.begin, known.size_bytes
            )
            return _element_text(told, begin - known.begin, size_bytes)
        for buffer in self.recording.buffers:
            inside = buffer.address <= begin < buffer.address + buffer.size_bytes
            if buffer.core == core and buffer.space == space and inside:
                name, slot = self._queue_names.get((core, space, buffer.address), ("", 0))
                if name:
                    offset = begin - buffer.address
                    return f"{name}#{slot}" + (f"+{offset}" if offset else "")
        return f"{space}:{begin}"


def _element_text(tensor: Tensor, offset: int, size_bytes: int) -> str:
    size = tensor.dtype.size_bytes
    first = offset // size
    last = (offset + size_bytes - 1) // size
    if last > first:
        return f"{tensor.name}[{first}:{last + 1}]"
    if len(tensor.shape) > 1 and first < tensor.count:
        index = np.unravel_index(first, tensor.shape)
        return f"{tensor.name}[{', '.join(str(int(n)) for n in index)}]"
    return f"{tensor.name}[{first}]"


def _operands(instruction: Instruction) -> list[Operand | None]:
    if instruction.op in ("GetValue", "SetValue"):
        return [*instruction.sources, instruction.dst][:1]
    return [instruction.dst, *instruction.sources]


def _base(text: str) -> str:
    """Return the variable of an argument, without subscripts and what it is reached through."""
    found = re.match(r"^\s*(?:this\s*->\s*)?([A-Za-z_]\w*)\s*(\[.*\])?\s*$", text, re.DOTALL)
    return found[1] if found else ""


def parse_place(text: str, core: int) -> Tensor | None:
    """Return the tensor of `UB:256:float16:64`: memory, offset, type, count; None for a name.

    Raises:
        UsageError: there is no such type.
    """
    found = _PLACE.match(text)
    if found is None:
        return None
    dtype = find_dtype(found["dtype"] or "float32")
    if dtype is None:
        raise UsageError(f'{text}: "{found["dtype"]}" is not a data type')
    offset = int(found["offset"], 0)
    return Tensor(text, found["space"], offset, int(found["count"] or 16), dtype, core)
