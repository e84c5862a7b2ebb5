"""What a race costs: the launch once more, in the order that loses."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opkit.dtypes import DTYPES

__all__ = ["Witness", "read_witness", "witness_text"]

_FORMATS = {
    **{"F16": "e", "F32": "f", "F64": "d", "BOOL": "?"},
    **{"S8": "b", "U8": "B", "S16": "h", "U16": "H"},
    **{"S32": "i", "U32": "I", "S64": "q", "U64": "Q"},
}


@dataclass(frozen=True)
class Witness:
    """A replay in another order that the kernel's synchronisation allows."""

    differing: int
    """Elements of global memory with another value than in the order of the program."""
    place: str
    """The tensor or allocation with the first of them; empty without one or its name."""
    element: int
    """Number of the first that differs, in its tensor."""
    dtype: str
    """What the values are taken as: the type that the racing instruction writes."""
    ordered: str
    """The value in the order of the program."""
    lost: str
    """The value in the losing order."""
    fault: str
    """How the losing order faults, where the order of the program does not; empty otherwise."""


def read_witness(record: Mapping[str, Any] | None) -> Witness | None:
    """Return the witness that the emulator hands over; None for findings without one."""
    if record is None:
        return None
    code = record["dtype"]
    return Witness(
        differing=record["differing"],
        place=record["place"],
        element=record["element"],
        dtype=next((row.name for row in DTYPES if row.code == code), code),
        ordered=_value_text(bytes.fromhex(record["ordered"]), code),
        lost=_value_text(bytes.fromhex(record["lost"]), code),
        fault=record["fault"],
    )


def _value_text(data: bytes, code: str) -> str:
    """Return a number as a developer reads it; its bytes for types that have no numbers."""
    if not data:
        return ""
    if code == "BF16":
        data, code = b"\0\0" + data, "F32"
    if code not in _FORMATS:
        return f"0x{data[::-1].hex()}"
    (value,) = struct.unpack(f"<{_FORMATS[code]}", data)
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def witness_text(witness: Witness) -> str:
    """Return what the losing order shows, one line."""
    if witness.fault:
        return f"in the losing order the launch faults: {witness.fault}"
    if witness.differing == 0:
        return "the losing order leaves the same values in global memory for these inputs"
    more = f"; {witness.differing} elements differ" if witness.differing > 1 else ""
    return (
        f"in the losing order {witness.dtype} element {witness.element} of "
        f"{witness.place or 'global memory'} is {witness.lost} instead of {witness.ordered}{more}"
    )
