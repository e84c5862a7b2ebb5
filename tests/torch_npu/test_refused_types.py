"""Types of operands and of `out=`: the element-wise operators take and refuse those of the CPU.

`~x` of floats was 0.0, `abs(x, out=half)` wrote it, `bitwise_and` of floats gave floats, and `add`
of truths into whole numbers gave 2.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.torch_npu.formulas import FormulaRow, formula_rows  # noqa: E402

pytestmark = pytest.mark.torch

TYPES = (torch.float32, torch.float16, torch.int32, torch.bool)
ROWS = {row.operator: row for row in formula_rows()}
ANY_SIZE = {"gelu_backward.grad_input"}
"""Where the CPU's library for whole numbers refuses by the number of elements."""


def operands(
    row: FormulaRow, types: tuple[Any, ...], device: str
) -> tuple[list[Any], dict[str, Any]]:
    """Make a call's arguments: tensors of these types, the last for `out=`; numbers are 2."""
    found, named, left = [], {}, list(types)
    for argument in overload(row)._schema.arguments:
        kind = str(argument.type)
        value: Any = 2
        if kind == "Tensor":
            shape = () if row.operator == "masked_fill_.Tensor" and argument.name == "value" else 3
            own = left.pop(0)
            truth = argument.name in ("mask", "condition")
            value = torch.ones(shape, dtype=torch.bool if truth else own).to(device)
        elif argument.name == row.argument and kind != "number":
            value = row.value
        elif argument.has_default_value():
            value = argument.default_value
        elif kind == "bool":
            value = True
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            found.append(value)
    return found, named


def overload(row: FormulaRow) -> Any:
    name, _, kind = row.operator.partition(".")
    return getattr(getattr(torch.ops.aten, name), kind or "default")


def taken(row: FormulaRow, types: tuple[Any, ...], device: str) -> bool:
    given, named = operands(row, types, device)
    try:
        overload(row)(*given, **named)
    except (RuntimeError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize("name", sorted(ROWS.keys() - ANY_SIZE))
def test_types_are_taken_or_refused_as_on_the_cpu(name: str) -> None:
    row = ROWS[name]
    schema = overload(row)._schema
    outputs = sum(argument.is_out for argument in schema.arguments)
    tensors = sum(str(argument.type) == "Tensor" for argument in schema.arguments) - outputs
    for first, other, out in itertools.product(TYPES, TYPES, TYPES):
        if (tensors == 1 and first != other) or (not outputs and out != first):
            continue
        types = (first, *[other] * (tensors - 1), *[out] * outputs)
        assert taken(row, types, "npu") == taken(row, types, "cpu"), types


@pytest.mark.parametrize(
    ("call", "operand", "out"),
    [
        (torch.add, torch.tensor([True, False]), torch.int64),
        (torch.add, torch.tensor([200, 3], dtype=torch.uint8), torch.int32),
        (torch.mul, torch.tensor([1 << 20, 3], dtype=torch.int32), torch.int64),
        (torch.exp, torch.tensor([1.3, 0.7], dtype=torch.float16), torch.float32),
        (torch.hypot, torch.tensor([1.3, 0.7], dtype=torch.bfloat16), torch.float32),
        (torch.clamp_min, torch.tensor([1, -1], dtype=torch.int8), torch.int8),
    ],
)
def test_a_wider_tensor_takes_what_the_operands_type_holds(
    call: Any, operand: Any, out: Any
) -> None:
    more = (operand,) if call in (torch.add, torch.mul, torch.hypot) else ()
    more = (0,) if call is torch.clamp_min else more
    wanted = call(operand, *more, out=torch.empty(2, dtype=out))
    there = operand.npu()
    moved = [each.npu() if isinstance(each, torch.Tensor) else each for each in more]
    got = call(there, *moved, out=torch.empty(2, dtype=out, device="npu"))
    torch.testing.assert_close(got.cpu(), wanted, rtol=0, atol=0)


def test_a_triangle_of_whole_numbers_goes_into_what_shares_memory() -> None:
    x = torch.arange(9, device="npu").reshape(3, 3)
    out = torch.zeros(1, 3, dtype=torch.int64, device="npu").expand(3, 3)
    assert torch.tril(x, out=out).tolist()[0] in torch.tril(x).tolist()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_whole_numbers_take_no_clamped_floats(dtype: Any) -> None:
    x = torch.tensor([0.5, 2.5], device="npu")
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.clamp(x, x, x, out=torch.zeros(2, dtype=dtype, device="npu"))
