"""The text of a kernel as it grows: lines, variables, what each pipe waits for, places in UB."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from .front import TritonError
from .ttir import Where
from .values import Buffer, Index

__all__ = ["Writer", "place_buffers"]

Kept = TypeVar("Kept")


@dataclass
class _State:
    """What a writer goes back to where a loop is written anew."""

    lines: int
    loops: int
    pipe: str
    where: Where | None
    known: list[dict[Hashable, object]] = field(default_factory=list)


class Writer:
    """Lines of C++; variables are declared before all of them, so that jumps cross none."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[tuple[str, str]] = []
        self.buffers: dict[str, Buffer] = {}
        self.loops: list[tuple[int, int]] = []
        self.notes: list[str] = []
        self.where: Where | None = None
        self.pipe = "any"
        self._printed: Where | None = None
        self._known: list[dict[Hashable, object]] = [{}]
        self._count = 0

    def line(self, text: str) -> None:
        """Write a line that belongs to the Python that is being read."""
        if self.where is not None and self.where != self._printed:
            file = self.where.file.replace("\\", "\\\\").replace('"', '\\"')
            self.lines.append(f'#line {self.where.line} "{file}"')
            self._printed = self.where
        elif self.where is not None:
            # The compiler counts lines on; all that one of Python becomes stands at its line.
            self.lines.append(f"#line {self.where.line}")
        self.lines.append(text)

    def name(self, start: str) -> str:
        """Return a name that nothing else has."""
        self._count += 1
        return f"{start}{self._count}"

    def variable(self, kind: str, text: str | None = None) -> str:
        """Declare a variable, and assign to it where there is text."""
        name = self.name("v")
        self.variables.append((kind, name))
        if text is not None:
            self.line(f"{name} = {text};")
        return name

    def buffer(self, element: str, count: int) -> Buffer:
        """Return a new place in UB."""
        made = Buffer(self.name("b"), element, count)
        self.buffers[made.name] = made
        return made

    def on(self, pipe: str) -> None:
        """Wait for what other pipes have done so far; `any` waits on both sides."""
        if pipe == "any" or self.pipe != pipe:
            self.line("barrier();")
        elif pipe == "V":
            self.line("PipeBarrier<PIPE_V>();")
        self.pipe = pipe

    def vector(self, text: str) -> None:
        """Write a vector instruction."""
        self.on("V")
        self.line(text)

    # What is written once where it is asked for twice, as long as the first place dominates.

    def known(self, key: Hashable) -> object | None:
        """Return what was kept under a key in this scope or one around it."""
        for scope in reversed(self._known):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: Hashable, value: Kept) -> Kept:
        """Keep a value for as long as the scope lasts."""
        self._known[-1][key] = value
        return value

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget at the end what was kept inside; pipes are waited for on both sides."""
        self._known.append({})
        self.pipe = "any"
        try:
            yield
        finally:
            self._known.pop()
            self.pipe = "any"

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Lines that run several times: what they read from before is kept to their end."""
        first = len(self.lines)
        self.line("barrier();")
        with self.scope():
            yield
        self.loops.append((first, len(self.lines)))

    def state(self) -> _State:
        """Return what `restore` goes back to."""
        known = [dict(scope) for scope in self._known]
        return _State(len(self.lines), len(self.loops), self.pipe, self.where, known)

    def restore(self, state: _State) -> None:
        """Take back everything that was written since."""
        del self.lines[state.lines :]
        del self.loops[state.loops :]
        self.pipe, self.where = state.pipe, state.where
        self._known = [dict(scope) for scope in state.known]
        self._printed = None

    # Whole numbers of 64 bits, folded where they are known.

    def sum(self, a: Index, b: Index) -> Index:
        """Return a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        return self._index(f"{_wide(a)} + {_wide(b)}")

    def difference(self, a: Index, b: Index) -> Index:
        """Return a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if b == 0:
            return a
        if a == b:
            return 0
        return self._index(f"{_wide(a)} - {_wide(b)}")

    def product(self, a: Index, b: Index) -> Index:
        """Return a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        if b == 1:
            return a
        return self._index(f"{_wide(a)} * {_wide(b)}")

    def call(self, function: str, *given: Index) -> Index:
        """Return what a function of `tile.h` gives for whole numbers."""
        if all(isinstance(each, int) for each in given):
            a, b = (int(each) for each in given)
            if function == "least":
                return min(a, b)
            if function == "most":
                return max(a, b)
            return a // b if function == "floor_div" else -(-a // b)
        return self._index(f"{function}({', '.join(_wide(each) for each in given)})")

    def index(self, text: str) -> Index:
        """Return a variable that holds a whole number of 64 bits."""
        return self._index(text)

    def _index(self, text: str) -> Index:
        key = ("index", text)
        found = self.known(key)
        if isinstance(found, str):
            return found
        return self.keep(key, self.variable("int64_t", text))


def _wide(index: Index) -> str:
    return f"{index}LL" if isinstance(index, int) else f"(int64_t){index}"


_NAME = re.compile(r"\bb\d+\b")


def place_buffers(
    writer: Writer, tail: Sequence[str], room_bytes: int
) -> tuple[dict[str, int], int]:
    """Return the address of each place in UB, and how many bytes are used.

    A place is taken from the first line that names it to the last, and all through loops that it
    goes into or comes out of.

    Raises:
        TritonError: they do not fit; says at which line how many bytes are asked.
    """
    del tail
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    lines: dict[str, Where] = {}
    place: Where | None = None
    for number, text in enumerate(writer.lines):
        found = re.match(r'#line (\d+)(?: "(.*)")?', text)
        if found is not None:
            file = found[2] or (place.file if place else "")
            place = Where(file, int(found[1]))
            continue
        for name in _NAME.findall(text):
            if name in writer.buffers:
                first.setdefault(name, number)
                last[name] = number
                if place is not None:
                    lines.setdefault(name, place)
    # Inner loops end before outer ones do.
    for begin, end in sorted(writer.loops, key=lambda loop: loop[1]):
        for name in first:
            if first[name] < begin <= last[name] < end:
                last[name] = end
            # What a loop fills round by round, and is read behind it, no other round may overwrite.
            if begin <= first[name] < end <= last[name]:
                first[name] = begin
    addresses: dict[str, int] = {}
    used = 0
    living: list[str] = []
    for name in sorted(first, key=lambda each: first[each]):
        living = [each for each in living if last[each] >= first[name]]
        size = writer.buffers[name].size_bytes
        address = _gap(sorted((addresses[each], each) for each in living), writer, size)
        if address + size > room_bytes:
            there = sum(writer.buffers[each].size_bytes for each in living)
            where = lines.get(name)
            begin_text = f"{where.file}:{where.line}: " if where is not None else ""
            raise TritonError(
                f"{begin_text}a tile of {size} bytes does not fit: {there} of the {room_bytes}"
                " bytes of UB are taken by tiles that are still needed",
                help="use smaller blocks",
            )
        addresses[name] = address
        living.append(name)
        used = max(used, address + size)
    return addresses, used


def _gap(taken: Sequence[tuple[int, str]], writer: Writer, size: int) -> int:
    at = 0
    for address, each in taken:
        if address - at >= size:
            break
        at = max(at, address + writer.buffers[each].size_bytes)
    return at
