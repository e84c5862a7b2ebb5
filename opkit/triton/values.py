"""What an operation's result is while a kernel's text is written."""

from __future__ import annotations

from dataclasses import dataclass

from .ttir import Type

__all__ = [
    "COMPUTED",
    "STORED",
    "Affine",
    "Buffer",
    "Index",
    "Mask",
    "Pointers",
    "Scalar",
    "Splat",
    "Stored",
    "Value",
    "element_bytes",
]

Index = int | str
"""A whole number of 64 bits: known, or a variable's name."""

STORED = {
    "i1": "uint8_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f16": "half",
    "bf16": "bfloat16_t",
    "f32": "float",
}
"""The C++ type of an element in UB."""

COMPUTED = STORED | {"i1": "bool", "f16": "float", "bf16": "float"}
"""The C++ type of a scalar; 16-bit floats are floats that hold such a value."""

_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4}


def element_bytes(element: str) -> int:
    """Return how many bytes an element has in memory."""
    return _BYTES[element]


@dataclass(frozen=True)
class Scalar:
    """A variable, or a constant."""

    type: Type
    text: str
    """C++ that may stand anywhere."""
    constant: int | float | None = None


@dataclass(frozen=True)
class Buffer:
    """A place in UB; its address is known when the whole text is."""

    name: str
    element: str
    count: int

    @property
    def size_bytes(self) -> int:
        """Rounded up to what instructions that compare read."""
        return (self.count * element_bytes(self.element) + 255) // 256 * 256


@dataclass(frozen=True)
class Affine:
    """Whole numbers that are base + a coefficient times the index along each dimension."""

    type: Type
    base: Index
    coefficients: tuple[Index, ...]


@dataclass(frozen=True)
class Splat:
    """The same scalar everywhere."""

    type: Type
    scalar: Scalar


@dataclass(frozen=True)
class Mask:
    """True inside of a box where all of some masks in UB are true."""

    type: Type
    low: tuple[Index, ...]
    high: tuple[Index, ...]
    buffers: tuple[Buffer, ...] = ()


@dataclass(frozen=True)
class Pointers:
    """Addresses: an address, coefficients in elements, offsets in UB in elements and in bytes."""

    type: Type
    address: Index
    coefficients: tuple[Index, ...]
    buffers: tuple[Buffer, ...] = ()
    places: tuple[Buffer, ...] = ()
    """In bytes: addresses that were computed, or carried from round to round."""


@dataclass(frozen=True)
class Stored:
    """A tile in UB, packed, row after row."""

    type: Type
    buffer: Buffer


Value = Scalar | Affine | Splat | Mask | Pointers | Stored
