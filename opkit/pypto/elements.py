"""Values that programs make outside of operators: numbers with a data type, torch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.compiler import GraphError

from .enumerations import DataType, dtype_name
from .location import here

__all__ = ["FUNCTIONS", "Element"]


@dataclass(frozen=True)
class Element:
    """A number of a data type; beside a tensor it takes the tensor's, as Python's numbers do."""

    dtype: DataType
    value: int | float

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)


def _from_torch(
    tensor: Any,
    name: str = "",
    *,
    dynamic_axis: Sequence[int] | None = None,
    tensor_format: object = None,
    dtype: object = None,
) -> Any:
    """The tensor itself, which functions with @pypto.jit take as it is; sizes are taken call by
    call, so that every axis may change.

    Raises:
        GraphError: it is no contiguous torch tensor, or is to be seen in another layout or type.
    """
    if type(tensor).__module__ != "torch":
        raise GraphError(
            f"from_torch takes a torch tensor, not {type(tensor).__name__}", location=here()
        )
    if not tensor.is_contiguous():
        raise GraphError(
            "from_torch takes contiguous tensors", location=here(), help="x.contiguous()"
        )
    if getattr(tensor_format, "name", "TILEOP_ND") != "TILEOP_ND":
        raise GraphError("from_torch: opkit has rows and columns only, TILEOP_ND", location=here())
    own = str(tensor.dtype).rpartition(".")[2]
    if dtype is not None and dtype_name(dtype) != own:
        raise GraphError(
            f"from_torch: opkit does not see {own} as {dtype_name(dtype)}",
            location=here(),
            help="convert it with tensor.to()",
        )
    return tensor


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("Element", "element"), Element),
    "from_torch": _from_torch,
}
