"""The operator prototype as data, after validation; nothing below this looks at the JSON again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from opkit.dtypes import DType
from opkit.schema.names import kernel_symbol
from opkit.schema.shape_rule import ShapeRule

__all__ = ["LIST_LENGTH", "AttrSpec", "AttrValue", "OpSpec", "TensorSpec"]

LIST_LENGTH = 2
"""How many tensors cases and tests give a list."""

AttrValue = (
    int
    | float
    | bool
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[bool, ...]
    | tuple[tuple[int, ...], ...]
)


@dataclass(frozen=True)
class TensorSpec:
    """One input or output."""

    name: str
    param_type: str
    """`required`, `optional` or `dynamic` (a list of tensors)."""
    dtypes: tuple[DType, ...]
    """One per variant: the i-th of every tensor together are the i-th supported combination."""
    formats: tuple[str, ...]
    """One per variant, such as `ND`."""
    formula: str | None = None
    """Outputs only: the maths over inputs and attributes that defines it."""
    shape: ShapeRule | None = None
    """Outputs only: how its shape follows, where the prototype says it."""
    axes: tuple[str | int, ...] | None = None
    """Inputs only: the name or the length of each axis, where the prototype says it; `...` first
    stands for any number of further ones. Of a list the first is how many tensors it has, before
    their own axes; or it is `...`, the axes of which each has its own."""
    is_scalar: bool = False
    """Inputs of OpDefs only: whether it is one number, which aclnn functions take as a scalar."""

    @property
    def is_list(self) -> bool:
        """Whether it is a list of tensors."""
        return self.param_type == "dynamic"


@dataclass(frozen=True)
class AttrSpec:
    """One attribute."""

    name: str
    type: str
    """`int float bool string list_int list_float list_bool list_list_int`."""
    required: bool
    default: AttrValue | None = None


@dataclass(frozen=True)
class OpSpec:
    """One operator prototype."""

    op: str
    """The OpDef name, UpperCamelCase as the JSON has it."""
    name: str
    """snake_case: file, kernel, Python and torch name (`kernel_name` in the JSON overrides it)."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attrs: tuple[AttrSpec, ...]
    source: Path
    """The JSON file it was read from."""
    pointer: str = field(default="", compare=False)
    """Where in that file: the JSON pointer of the operator."""
    gradient: str | bool | None = None
    """The `op` of the operator that computes its gradients; False for none, None to derive it."""
    fast_math: bool = False
    """Whether formulas may be simplified where NaN, infinities and signed zeros would change."""

    @property
    def symbol(self) -> str:
        """The kernel function that `opkit gen` writes: `name`, or what C leaves free."""
        return kernel_symbol(self.name)

    @property
    def variant_count(self) -> int:
        """Number of supported dtype combinations; one of an operator without tensors."""
        tensors = (*self.inputs, *self.outputs)
        return len(tensors[0].dtypes) if tensors else 1

    @property
    def has_formula(self) -> bool:
        """Whether every output has a formula over inputs of one shape, or of one row of it."""
        return bool(self.outputs) and all(t.formula for t in self.outputs) and not self.is_program

    @property
    def is_program(self) -> bool:
        """Whether its inputs' axes have names: the compiler makes its kernel of the formulas."""
        return any(tensor.axes is not None for tensor in self.inputs)

    def variant_dtypes(self, variant: int) -> tuple[DType, ...]:
        """Return the dtypes of inputs then outputs of one variant."""
        return tuple(tensor.dtypes[variant] for tensor in (*self.inputs, *self.outputs))
