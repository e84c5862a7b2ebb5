"""One row per data type: its names in a prototype, in a kernel, in NumPy and in torch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "COMPLEX_DTYPES",
    "DTYPES",
    "INT4",
    "TENSOR_DTYPES",
    "DType",
    "dtype_names",
    "find_dtype",
    "find_tensor_dtype",
]


@dataclass(frozen=True)
class DType:
    """One data type of the AI core."""

    name: str
    """The canonical prototype name, also NumPy's where NumPy has the type."""
    kernel: str
    """The type's name in Ascend C source."""
    ge: str
    """The enumerator without its `ge::` prefix, also the value of `ORIG_DTYPE_X`."""
    ge_value: int
    """The enumerator's number (public `ge::DataType` documentation)."""
    code: str
    """The enumerator of `opkit::DType` (include/opkit/types.h)."""
    size_bytes: int
    """Bytes of an element of the storage type."""
    numpy: str | None
    """Storage type in NumPy; bfloat16 is carried as uint16, complex32 as uint32, int4 as uint8."""
    torch: str | None
    aliases: tuple[str, ...] = ()


# name        kernel         ge               value  code   bytes numpy     torch       aliases
DTYPES = (
    DType("float16", "half", "DT_FLOAT16", 1, "F16", 2, "float16", "float16", ("fp16", "half")),
    DType("float32", "float", "DT_FLOAT", 0, "F32", 4, "float32", "float32", ("fp32", "float")),
    DType("bfloat16", "bfloat16_t", "DT_BF16", 27, "BF16", 2, "uint16", "bfloat16", ("bf16",)),
    DType("int8", "int8_t", "DT_INT8", 2, "S8", 1, "int8", "int8", ("s8",)),
    DType("uint8", "uint8_t", "DT_UINT8", 4, "U8", 1, "uint8", "uint8", ("u8",)),
    DType("int16", "int16_t", "DT_INT16", 6, "S16", 2, "int16", "int16", ("s16",)),
    DType("uint16", "uint16_t", "DT_UINT16", 7, "U16", 2, "uint16", None, ("u16",)),
    DType("int32", "int32_t", "DT_INT32", 3, "S32", 4, "int32", "int32", ("int", "s32")),
    DType("uint32", "uint32_t", "DT_UINT32", 8, "U32", 4, "uint32", None, ("u32",)),
    DType("int64", "int64_t", "DT_INT64", 9, "S64", 8, "int64", "int64", ("s64",)),
    DType("uint64", "uint64_t", "DT_UINT64", 10, "U64", 8, "uint64", None, ("u64",)),
    DType("bool", "bool", "DT_BOOL", 12, "BOOL", 1, "bool", "bool", ()),
    DType("float64", "double", "DT_DOUBLE", 11, "F64", 8, "float64", "float64", ("double",)),
)

# What tensors of operators with host code of their own may hold. No instruction of these chips
# takes a complex number, so kernels move one as a word: the code is the word's, the names are no
# prototype's. Source: Ascend C API, complex32/complex64 (other chips alone have them).
COMPLEX_DTYPES = (
    DType("complex32", "complex32", "DT_COMPLEX32", 33, "U32", 4, "uint32", "complex32"),
    DType("complex64", "complex64", "DT_COMPLEX64", 16, "U64", 8, "complex64", "complex64"),
)

# Two elements share a byte, the first one in its lower half: an array has half as many bytes in its
# last axis as the tensor has elements. Source: Ascend C API, Cast and DataCopy of int4b_t.
INT4 = DType("int4", "AscendC::int4b_t", "DT_INT4", 29, "S4", 1, "uint8", None)
TENSOR_DTYPES = (*DTYPES, *COMPLEX_DTYPES, INT4)

_BY_NAME = {name: row for row in DTYPES for name in (row.name, *row.aliases)}


def find_dtype(name: str) -> DType | None:
    """Return the row of a name or an alias, in any case; None if there is none."""
    return _BY_NAME.get(name.lower())


def find_tensor_dtype(name: str) -> DType | None:
    """Return the row of a type that some tensor may hold: also the complex ones and int4."""
    return find_dtype(name) or next((r for r in TENSOR_DTYPES if r.name == name.lower()), None)


def dtype_names() -> tuple[str, ...]:
    """Return every accepted spelling, canonical names first."""
    return tuple(row.name for row in DTYPES) + tuple(a for row in DTYPES for a in row.aliases)
