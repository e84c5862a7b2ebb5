"""A kernel as a class and its tiling structure, and the numbers that fill this."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..ir import Dimension
from .text import Text, identifier, upper

__all__ = [
    "ExtentOf",
    "KernelClass",
    "LaunchRule",
    "TilingValue",
    "class_of",
    "pack_tiling",
    "struct_of",
]

# Tiling data of the API's own functions, whose names operators have, too: a test compares them with
# the headers.
_API_TILINGS = frozenset(
    f"{function}Tiling"
    for function in (
        *(
            "BatchNorm",
            "ConfusionTranspose",
            "DeepNorm",
            "GroupNorm",
            "LayerNorm",
            "LayerNormGrad",
            "LayerNormGradBeta",
        ),
        *("LayerNormSeparate", "LogSoftMax", "Pad", "RmsNorm", "SoftMax", "TCube", "Topk", "UnPad"),
    )
)
_CODES = {"int64_t": "q", "uint64_t": "Q", "uint32_t": "I", "int32_t": "i", "float": "f"}


@dataclass(frozen=True)
class KernelClass:
    """What computes a launch: `Init` takes addresses and tiling data, `Process` does the rest."""

    name: str
    """The entry point."""
    class_name: str
    struct: str
    """The type of its tiling data."""
    declaration: Text
    """Declaration of that type."""
    definition: Text
    """Definition of the class."""
    parameters: tuple[str, ...]
    """The names of its addresses, in order."""
    takes_all: bool = False
    """It shares its work among all cores of a launch, however many there are."""

    def whole(self) -> Text:
        """Return both with an entry point, whose tiling data comes last, by value."""
        out = Text()
        for part in (self.declaration, self.definition):
            out.extend(part)
            out()
        given = ", ".join(f"GM_ADDR {each}" for each in self.parameters)
        out(f'extern "C" __global__ __aicore__ void {self.name}({given}, {self.struct} tiling)')
        out("{")
        out(f"{self.class_name} op;")
        out(f"op.Init({', '.join(self.parameters)}, tiling);")
        out("op.Process();")
        out("}")
        return out


@dataclass(frozen=True)
class TilingValue:
    """One member of the tiling data, in the order in which they lie there."""

    member: str
    """As C++ writes it, such as `boxes[1].rows`."""
    cpp_type: str
    value: Any
    """A number, or a term of the host's C++."""


ExtentOf: TypeAlias = Callable[[Dimension], Any]
"""Returns an extent as a number, or as a term of the host's C++."""
LaunchRule: TypeAlias = Callable[
    [Any, ExtentOf, Mapping[str, Any]], tuple[Any, Sequence[TilingValue]]
]
"""Returns the cores that a launch takes and its tiling data, from the cores that the chip has,
the numbers of named sizes and those that come with a launch."""


def class_of(name: str) -> str:
    """Return the class of a kernel of this name."""
    return "Kernel" + upper(identifier(name))


def struct_of(name: str) -> str:
    """Return the type of the tiling data of a kernel of this name: none that the API has."""
    stem = upper(identifier(name))
    return f"{stem}OwnTiling" if f"{stem}Tiling" in _API_TILINGS else f"{stem}Tiling"


def pack_tiling(values: Sequence[TilingValue]) -> bytes:
    """Return tiling data whose members lie one behind another, without gaps."""
    code = "=" + "".join(_CODES[each.cpp_type] for each in values)
    numbers = (
        float(each.value) if each.cpp_type == "float" else int(each.value) for each in values
    )
    return struct.pack(code, *numbers)
