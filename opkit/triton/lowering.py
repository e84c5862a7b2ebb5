"""Operations of Triton's IR to the lines of a kernel: values in between, and who lowers what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .front import TritonError
from .ttir import Block, Module, Operation, Type
from .values import (
    COMPUTED,
    STORED,
    Affine,
    Buffer,
    Index,
    Mask,
    Pointers,
    Scalar,
    Splat,
    Stored,
    Value,
    element_bytes,
)
from .writer import Writer

__all__ = ["Lowerer", "Lowering", "all_operations", "indices", "lowers"]

Lowerer = Callable[["Lowering", Operation], None]

_LOWERERS: dict[str, Lowerer] = {}


def lowers(*names: str) -> Callable[[Lowerer], Lowerer]:
    """Say which operations a function lowers."""

    def register(function: Lowerer) -> Lowerer:
        for name in names:
            _LOWERERS[name] = function
        return function

    return register


def indices(values: Sequence[Index]) -> str:
    """Return C++ of an array of whole numbers."""
    return "{" + ", ".join(str(each) for each in values) + "}"


class Lowering:
    """One kernel's text under construction."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.writer = Writer()
        self.values: dict[str, Value] = {}
        self.operation: Operation | None = None
        self.function = module.kernel
        """The function that is being lowered."""
        self.is_written = any(
            each.name in ("tt.store", "tt.atomic_rmw", "tt.atomic_cas")
            for function in module.functions.values()
            for each in all_operations(function)
        )
        self.products: dict[tuple[str, int, int, int], str] = {}
        """Matrix products: an object for each element and each (m, n, k)."""
        self.workspace_bytes = 0
        """Global memory that each core needs for itself."""
        self.needs_library = False
        """Whether more than the basic API is called."""
        self.is_in_turns = False
        """Whether programs run one after the other, on one core."""
        self.calls: list[str] = []
        self.returns: list[tuple[str, list[Value]]] = []

    # Values.

    def value(self, name: str) -> Value:
        """Return what a name of the IR stands for."""
        return self.values[name]

    def given(self, operation: Operation) -> list[Value]:
        """Return an operation's operands."""
        return [self.values[name] for name in operation.operands]

    def set(self, operation: Operation, *values: Value) -> None:
        """Name an operation's results."""
        for name, value in zip(operation.results, values, strict=True):
            self.values[name] = value

    def matrix_product(self, element: str, m: int, n: int, k: int) -> str:
        """Return the name of the object that multiplies tiles of these extents."""
        self.needs_library = True
        return self.products.setdefault((element, m, n, k), f"product_{len(self.products)}")

    def refuse(self, message: str, *, help: str | None = None) -> TritonError:
        """Return the error that something has no kernel, at the line of the Python."""
        where = self.operation.where if self.operation is not None else None
        place = f"{where.file}:{where.line}: " if where is not None else ""
        return TritonError(place + message, help=help)

    def note_slow(self, what: str) -> None:
        """Note that something goes element by element through the scalar unit."""
        self._note(f"{what} goes element by element through the scalar unit")

    def run_in_turns(self, what: str) -> None:
        """Have programs run one after the other, on one core, and note what needs it."""
        self.is_in_turns = True
        self._note(f"{what}: all programs run one after the other on one core")

    def _note(self, message: str) -> None:
        where = self.operation.where if self.operation is not None else None
        text = f"{where.file}:{where.line}: {message}" if where is not None else message
        if text not in self.writer.notes:
            self.writer.notes.append(text)

    def scalar(self, value: Value) -> Scalar:
        """Return a value that is a scalar."""
        if not isinstance(value, Scalar):
            raise self.refuse("a tile stands where one number is expected")
        return value

    def index_of(self, scalar: Scalar) -> Index:
        """Return a scalar as a whole number of 64 bits."""
        if scalar.constant is not None:
            return int(scalar.constant)
        return scalar.text

    def new_scalar(self, kind: Type, text: str) -> Scalar:
        """Assign C++ to a new variable."""
        ctype = "int64_t" if kind.is_pointer else COMPUTED[self.element(kind)]
        return Scalar(kind, self.writer.variable(ctype, text))

    def element(self, kind: Type) -> str:
        """Return the element of a type in UB; refuse those that nothing here computes."""
        if kind.is_pointer:
            return "i64"
        if kind.element not in STORED:
            names = {"f64": "float64", "f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3"}
            name = names.get(kind.element, kind.element)
            raise self.refuse(f"{name} is no data type that the chip's vector units compute")
        return kind.element

    def new_buffer(self, kind: Type) -> Buffer:
        """Return a new place in UB for a tile."""
        return self.writer.buffer(self.element(kind), kind.count)

    def stored(self, value: Value) -> Buffer:
        """Return the place in UB that holds a value, which is written there where it is not yet."""
        if isinstance(value, Stored):
            return value.buffer
        key = ("stored", value)
        found = self.writer.known(key)
        if isinstance(found, Buffer):
            return found
        return self.writer.keep(key, self._materialise(value))

    def fresh(self, value: Value) -> Buffer:
        """Return a place in UB that nothing else reads, with a value in it."""
        return self._materialise(value)

    def _materialise(self, value: Value) -> Buffer:
        writer = self.writer
        buffer = self.new_buffer(value.type)
        count = buffer.count
        kind = STORED[buffer.element]
        shape = value.type.shape or (1,)
        rank = len(shape)
        if isinstance(value, Scalar):
            writer.on("S")
            writer.line(f"set({buffer.name}, 0, {value.text});")
        elif isinstance(value, Splat):
            writer.on("V")
            text = f"stored<{kind}>({value.scalar.text})"
            writer.line(f"fill({buffer.name}, {text}, {count});")
        elif isinstance(value, Affine):
            if any(each != 0 for each in value.coefficients):
                writer.on("V")
                writer.line(
                    f"ramp<{kind}, {rank}>({buffer.name}, {value.base},"
                    f" {indices(value.coefficients)}, {indices(shape)});"
                )
                writer.pipe = "any" if rank > 1 or kind != "int32_t" else "V"
            else:
                writer.on("V")
                writer.line(f"fill({buffer.name}, ({kind})({value.base}), {count});")
        elif isinstance(value, Mask):
            self.each_element(
                value.type,
                lambda at, loops: self._mask_line(buffer, value, at, loops),
            )
        elif isinstance(value, Pointers):
            self.each_element(
                value.type,
                lambda at, loops: (
                    f"{buffer.name}.SetValue({at}, {self.address_text(value, at, loops)});"
                ),
            )
        return buffer

    def _mask_line(self, buffer: Buffer, mask: Mask, at: str, loops: Sequence[str]) -> str:
        return f"set({buffer.name}, {at}, {self.mask_text(mask, at, loops)});"

    def each_element(self, kind: Type, line: Callable[[str, Sequence[str]], str]) -> None:
        """Write loops over a tile's elements; `line` gives their inside for index and indices."""
        writer = self.writer
        shape = kind.shape or (1,)
        names = [writer.name("i") for _ in shape]
        writer.on("any")
        # In one line: nothing in it may be moved to another.
        heads = "".join(
            f"for (int64_t {name} = 0; {name} < {extent}; ++{name}) "
            for name, extent in zip(names, shape, strict=True)
        )
        at = "0"
        for name, extent in zip(names, shape, strict=True):
            at = name if at == "0" else f"({at} * {extent} + {name})"
        writer.line(f"{heads}{{ {line(at, names)} }}")
        writer.pipe = "any"

    def mask_text(self, mask: Mask, at: str, loops: Sequence[str]) -> str:
        """Return C++ that says whether an element is in a mask."""
        parts = []
        shape = mask.type.shape or ()
        for name, extent, low, high in zip(loops, shape, mask.low, mask.high, strict=True):
            if low != 0:
                parts.append(f"{name} >= {low}")
            if high != extent:
                parts.append(f"{name} < {high}")
        parts += [f"get({each.name}, {at})" for each in mask.buffers]
        return f"({' && '.join(parts)})" if parts else "true"

    def address_text(self, pointers: Pointers, at: str, loops: Sequence[str]) -> str:
        """Return C++ of an element's address."""
        parts = [
            f"{name} * (int64_t){coefficient}"
            for name, coefficient in zip(loops, pointers.coefficients, strict=True)
            if coefficient != 0
        ]
        parts += [f"(int64_t){each.name}.GetValue({at})" for each in pointers.buffers]
        size = self.pointee_bytes(pointers.type)
        whole = [f"(int64_t){pointers.address}"]
        whole += [f"{each.name}.GetValue({at})" for each in pointers.places]
        whole += [f"({' + '.join(parts)}) * {size}"] if parts else []
        return " + ".join(whole)

    def pointee_bytes(self, kind: Type) -> int:
        """Return how many bytes the elements have that pointers of a type point to."""
        inner = kind.element
        if inner.startswith("!tt.ptr"):
            return 8
        return element_bytes(self.element(Type(inner)))

    def as_pointers(self, value: Value) -> Pointers:
        """Return pointers in their parts."""
        if isinstance(value, Pointers):
            return value
        rank = len(value.type.shape or ())
        if isinstance(value, Splat):
            return Pointers(value.type, self.index_of(value.scalar), (0,) * rank)
        if isinstance(value, Stored):
            return Pointers(value.type, 0, (0,) * rank, (), (value.buffer,))
        raise self.refuse("no pointer stands where one is expected")

    def as_mask(self, value: Value) -> Mask:
        """Return a mask in its parts."""
        shape = value.type.shape or ()
        if isinstance(value, Mask):
            return value
        low: tuple[Index, ...] = (0,) * len(shape)
        if isinstance(value, Splat):
            if value.scalar.constant is not None:
                high: tuple[Index, ...] = shape if value.scalar.constant else (0,) * len(shape)
                return Mask(value.type, low, high)
            first = self.writer.index(f"{value.scalar.text} ? {shape[0]} : 0")
            return Mask(value.type, low, (first, *shape[1:]))
        return Mask(value.type, low, shape, (self.stored(value),))

    # Operations.

    def block(self, block: Block) -> Operation:
        """Lower a block's operations but the last, which is returned."""
        for operation in block.operations[:-1]:
            self.lower(operation)
        last = block.operations[-1]
        self.enter(last)
        return last

    def enter(self, operation: Operation) -> None:
        """Write what follows at an operation's line."""
        self.operation = operation
        where = operation.where
        if where is not None and not _is_tritons(where.file):
            self.writer.where = where
        elif self.writer.where is not None:
            # Functions of Triton's own library are told at the line that calls them.
            operation.where = self.writer.where

    def lower(self, operation: Operation) -> None:
        """Lower one operation."""
        self.enter(operation)
        lowerer = _LOWERERS.get(operation.name)
        if lowerer is None:
            raise self.refuse(f"{operation.name} has no kernel here")
        lowerer(self, operation)


def _is_tritons(file: str) -> bool:
    return "/triton/language/" in file.replace("\\", "/")


def all_operations(operation: Operation) -> list[Operation]:
    found = [operation]
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                found += all_operations(each)
    return found
