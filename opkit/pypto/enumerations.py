"""The public project's enumerations, by their documents.

Data types are the compiler's own names, so that `x.dtype == pypto.DT_BF16` compares as it reads.
"""

from __future__ import annotations

import enum
from typing import Any

from opkit.compiler import GraphError
from opkit.dtypes import find_dtype

from .location import here

__all__ = ["ENUMERATIONS", "PRECISION", "DataType", "dtype_name"]


class DataType(str, enum.Enum):
    """Data types; those that no row of `opkit.dtypes` has are refused where they are used."""

    DT_FP32 = "float32"
    DT_FP16 = "float16"
    DT_BF16 = "bfloat16"
    DT_INT8 = "int8"
    DT_UINT8 = "uint8"
    DT_INT16 = "int16"
    DT_UINT16 = "uint16"
    DT_INT32 = "int32"
    DT_UINT32 = "uint32"
    DT_INT64 = "int64"
    DT_UINT64 = "uint64"
    DT_BOOL = "bool"
    DT_DOUBLE = "float64"
    DT_INT4 = "int4"
    DT_FP8 = "fp8"
    DT_HF4 = "hf4"
    DT_HF8 = "hf8"
    DT_FP4E2M1 = "fp4e2m1"
    DT_FP8E4M3 = "fp8e4m3"
    DT_FP8E5M2 = "fp8e5m2"
    DT_FP8E8M0 = "fp8e8m0"
    DT_FP4_E2M1X2 = "fp4_e2m1x2"
    DT_FP4_E1M2X2 = "fp4_e1m2x2"

    def __str__(self) -> str:
        return f"DataType.{self.name}"

    __hash__ = str.__hash__


def dtype_name(dtype: object) -> str:
    """Return the name of a data type: `DT_FP16`, `numpy.float16` or "float16".

    Raises:
        GraphError: there is none.
    """
    if isinstance(dtype, DataType):
        text = dtype.value
    else:
        text = str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]
    row = find_dtype(text)
    if row is None:
        raise GraphError(f"{dtype} is no data type that opkit has", location=here())
    return row.name


_NAMES = {
    "CachePolicy": ("PREFETCH", "NONE_CACHEABLE"),
    "CastMode": (
        *("CAST_NONE", "CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL"),
        *("CAST_TRUNC", "CAST_ODD"),
    ),
    "ConvReLuType": ("NO_RELU", "RELU"),
    "LogBaseType": ("LOG_E", "LOG_2", "LOG_10"),
    "OutType": ("BOOL", "BIT"),
    "PrecisionType": ("INTRINSIC", "HIGH_PRECISION"),
    "ReLuType": ("NO_RELU", "RELU"),
    "ReduceMode": ("ATOMIC_ADD",),
    "RunMode": ("NPU", "SIM"),
    "SaturationMode": ("OFF", "ON"),
    "ScatterMode": ("ADD", "MULTIPLY"),
    "TileOpFormat": ("TILEOP_ND", "TILEOP_NZ"),
    "TopKAlgo": ("MERGE_SORT", "RADIX_SELECT"),
    "TransMode": ("CAST_NONE", "CAST_RINT", "CAST_ROUND"),
}
"""What chooses how something is computed, stored or run; `RunMode` is no other for opkit, which
runs both on the emulated chip."""

ENUMERATIONS: dict[str, Any] = {
    "DataType": DataType,
    **{name: enum.Enum(name, members) for name, members in _NAMES.items()},
}

PRECISION: Any = ENUMERATIONS["PrecisionType"]
