"""Triton's IR as values: the generic text form of MLIR read into operations, blocks and types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["Block", "Module", "Operation", "Type", "Where", "read_module"]


@dataclass(frozen=True)
class Type:
    """A scalar or a tensor of numbers or of pointers."""

    element: str
    """MLIR's name of an element, such as `f32`; of what pointers point to."""
    shape: tuple[int, ...] | None = None
    """None: a scalar."""
    is_pointer: bool = False

    @property
    def count(self) -> int:
        """How many elements; 1 for a scalar."""
        count = 1
        for extent in self.shape or ():
            count *= extent
        return count


@dataclass(frozen=True)
class Where:
    """A line of the user's Python."""

    file: str
    line: int


@dataclass
class Block:
    """Operations one after the other."""

    label: str
    arguments: list[tuple[str, Type]]
    operations: list[Operation]


@dataclass
class Operation:
    """One operation; values are named as in the text, `%x#1` is the second result of `%x`."""

    name: str
    operands: list[str]
    operand_types: list[Type]
    results: list[str]
    result_types: list[Type]
    attributes: dict[str, str] = field(default_factory=dict)
    regions: list[list[Block]] = field(default_factory=list)
    successors: list[str] = field(default_factory=list)
    where: Where | None = None

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute such as `1 : i32`."""
        text = self.attributes.get(name)
        if text is None:
            if default is None:
                raise KeyError(name)
            return default
        return int(text.split(":")[0])

    def integers(self, name: str) -> list[int]:
        """Return an attribute such as `array<i32: 1, 0>`."""
        text = self.attributes[name]
        inside = text[text.index("<") + 1 : -1].partition(":")[2]
        return [int(word) for word in inside.split(",") if word.strip()]


@dataclass(frozen=True)
class Module:
    """Functions by name; the kernel is the public one."""

    functions: dict[str, Operation]

    @property
    def kernel(self) -> Operation:
        """The function that a launch starts."""
        return next(
            each
            for each in self.functions.values()
            if each.attributes.get("sym_visibility") == '"public"'
        )


def read_module(text: str) -> Module:
    """Return the functions of a module in MLIR's generic form, with debug locations."""
    reader = _Reader(text)
    module = reader.operation()
    functions = {
        each.attributes["sym_name"].strip('"'): each
        for each in module.regions[0][0].operations
        if each.name == "tt.func" and each.attributes["sym_name"] != '"opkit_generic"'
    }
    return Module(functions)


_TENSOR = re.compile(r"((?:\d+x)*)(.+)")


def read_type(text: str) -> Type:
    """Return the type of MLIR's text for it."""
    text = text.strip()
    if text.startswith("tensor<"):
        match = _TENSOR.fullmatch(text[len("tensor<") : -1])
        assert match is not None
        inner = read_type(match[2])
        shape = tuple(int(word) for word in match[1].split("x") if word)
        return Type(inner.element, shape, inner.is_pointer)
    if text.startswith("!tt.ptr<"):
        inside = text[len("!tt.ptr<") : -1].partition(",")[0]
        if inside.startswith("tensor") or inside.startswith("!tt.ptr"):
            return Type(inside, None, True)
        return Type(inside, None, True)
    return Type(text)


_LOCATION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_NAME = re.compile(r"%[\w.$#-]+(?::\d+)?")
_LABEL = re.compile(r"\^\w+")


class _Reader:
    def __init__(self, text: str) -> None:
        self.places = dict(_LOCATION.findall(text))
        start = text.index('"builtin.module"')
        self.text = text
        self.at = start

    def skip(self) -> None:
        text = self.text
        while True:
            while self.at < len(text) and text[self.at].isspace():
                self.at += 1
            if text.startswith("//", self.at):
                self.at = text.index("\n", self.at)
                continue
            return

    def peek(self, word: str) -> bool:
        self.skip()
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        if self.peek(word):
            self.at += len(word)
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise ValueError(f"IR: expected {word!r} at {self.text[self.at : self.at + 60]!r}")

    def match(self, pattern: re.Pattern[str]) -> str:
        self.skip()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise ValueError(f"IR: cannot read {self.text[self.at : self.at + 60]!r}")
        self.at = found.end()
        return found[0]

    def until(self, ends: str) -> str:
        """Return the text up to one of some characters outside of brackets and strings."""
        self.skip()
        text, start, depth = self.text, self.at, 0
        while True:
            letter = text[self.at]
            if letter == '"':
                self.at += 1
                while text[self.at] != '"':
                    self.at += 2 if text[self.at] == "\\" else 1
            elif depth == 0 and letter in ends:
                return text[start : self.at].strip()
            elif text.startswith("->", self.at):
                self.at += 1
            elif letter in _OPENING:
                depth += 1
            elif letter in ")]}>":
                depth -= 1
            self.at += 1

    def operation(self) -> Operation:
        results: list[str] = []
        if self.peek("%"):
            names = [self.match(_NAME)]
            while self.take(","):
                names.append(self.match(_NAME))
            self.expect("=")
            for name in names:
                plain, _, count = name.partition(":")
                results += [f"{plain}#{i}" for i in range(int(count))] if count else [plain]
        self.expect('"')
        end = self.text.index('"', self.at)
        name = self.text[self.at : end]
        self.at = end + 1
        self.expect("(")
        operands = []
        while not self.take(")"):
            operands.append(self.match(_NAME))
            self.take(",")
        operation = Operation(name, operands, [], results, [])
        if self.take("["):
            while not self.take("]"):
                operation.successors.append(self.match(_LABEL))
                self.take(",")
        if self.take("<{"):
            self.attributes(operation)
            self.expect(">")
        if self.take("("):
            while not self.take(")"):
                operation.regions.append(self.region())
                self.take(",")
        if self.take("{"):
            self.attributes(operation)
        self.expect(":")
        self.expect("(")
        operation.operand_types = self.types(")")
        self.expect("->")
        if self.take("("):
            operation.result_types = self.types(")")
        else:
            operation.result_types = [read_type(self.result_type())]
        operation.where = self.location()
        return operation

    def result_type(self) -> str:
        self.skip()
        start = self.at
        depth = 0
        while depth or not self.text[self.at].isspace():
            depth += {"<": 1, ">": -1}.get(self.text[self.at], 0)
            self.at += 1
        return self.text[start : self.at]

    def types(self, end: str) -> list[Type]:
        found = []
        while not self.take(end):
            found.append(read_type(self.until("," + end)))
            self.take(",")
        return found

    def attributes(self, operation: Operation) -> None:
        while not self.take("}"):
            self.skip()
            name = self.until("=,}")
            value = self.until(",}") if self.take("=") else "unit"
            operation.attributes[name] = value
            self.take(",")

    def region(self) -> list[Block]:
        self.expect("{")
        blocks: list[Block] = []
        while not self.take("}"):
            if self.peek("^"):
                label = self.match(_LABEL)
                arguments = []
                if self.take("("):
                    while not self.take(")"):
                        name = self.match(_NAME)
                        self.expect(":")
                        arguments.append((name, read_type(self.result_type_or(",)"))))
                        self.location()
                        self.take(",")
                self.expect(":")
                blocks.append(Block(label, arguments, []))
                continue
            if not blocks:
                blocks.append(Block("", [], []))
            blocks[-1].operations.append(self.operation())
        return blocks

    def result_type_or(self, ends: str) -> str:
        self.skip()
        start, depth = self.at, 0
        while True:
            letter = self.text[self.at]
            if depth == 0 and (letter.isspace() or letter in ends):
                return self.text[start : self.at]
            depth += {"<": 1, ">": -1}.get(letter, 0)
            self.at += 1

    def location(self) -> Where | None:
        if not self.take("loc("):
            return None
        inside = self.until(")")
        self.expect(")")
        return self.place(inside)

    def place(self, text: str) -> Where | None:
        """Return the first line of Python that a location leads to."""
        for _ in range(20):
            found = _PLACE.search(text)
            if found is not None:
                return Where(found[1], int(found[2]))
            link = re.search(r"#loc\d*", text)
            if link is None or link[0] not in self.places:
                return None
            text = self.places[link[0]]
        return None
