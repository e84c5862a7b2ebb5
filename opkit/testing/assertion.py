"""The assertions that an operator project's own tests use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opkit.dtypes import DType, dtype_names, find_tensor_dtype
from opkit.errors import PrecisionError, UsageError
from opkit.schema import AttrValue
from opkit.testing.cases import as_outputs
from opkit.testing.judgement import check_shapes, judge_parts
from opkit.testing.numbers import (
    Array,
    Comparison,
    Evaluation,
    ExactOutput,
    Input,
    Standard,
    compare,
    evaluate_exactly,
    storage,
    widen_input,
)
from opkit.testing.references import Part, in_single_precision
from opkit.testing.settings import standard_for

__all__ = ["assert_close", "assert_outputs"]


def assert_close(
    actual: Array,
    golden: Array,
    *,
    dtype: DType | str | None = None,
    standard: Standard | str = "ecosystem",
    second: Array | None = None,
) -> None:
    """Raise unless `actual` meets the precision standard against `golden`.

    It knows no inputs, so it forgives no cancellation; `assert_outputs` does.

    Args:
        actual: what the operator wrote; bfloat16 is uint16 with `dtype` given.
        golden: the reference in float64 or whole numbers, same shape.
        second: a result of the operator's own precision in float64, for the standards that measure
            by one; see `compare`.
    Raises:
        PrecisionError: it does not; also an AssertionError.
        UsageError: as `compare`.
    """
    result = compare(actual, golden, dtype=dtype, standard=standard, second=second)
    if not result.passed:
        raise PrecisionError(_text("the result", result))


def assert_outputs(
    actual: Array | Sequence[Array | Sequence[Array]],
    golden: Callable[..., object],
    inputs: Sequence[Input],
    *,
    dtypes: Sequence[str],
    attributes: Mapping[str, AttrValue] | None = None,
    standard: Standard | str = "conditioned",
) -> None:
    """Raise unless an operator's outputs are right, as `opkit test` judges them.

    Args:
        actual: what the operator wrote, one array or one for each output; a list of arrays for an
            output that is one.
        golden: the reference, from wide arrays and attributes by keyword to an array or several.
        inputs: what the operator got, as its data types are stored.
        dtypes: of the inputs, then of the outputs.
        attributes: by name; given to the golden as operators get them, in float32.
    Raises:
        PrecisionError: an output misses the standard; also an AssertionError.
        UsageError: as `compare`, or a standard that needs a second reference.
    """
    types = [_row(name) for name in dtypes]
    is_one_list = isinstance(actual, list) and len(types) == len(inputs) + 1
    given = actual if isinstance(actual, (tuple, list)) and not is_one_list else [actual]
    function = _Function(golden, types[: len(inputs)], attributes or {})
    # The tensors of a list have one type.
    pairs = [
        (storage(array, dtype), dtype)
        for value, dtype in zip(given, types[len(inputs) :], strict=True)
        for array in (value if isinstance(value, list) else [value])
    ]
    arrays = [array for array, _ in pairs]
    name = golden.__name__

    def parts() -> list[Part]:
        evaluation = function.evaluation(inputs)
        with np.errstate(all="ignore"):
            found = evaluation.function(evaluation.inputs)
        check_shapes(name, arrays, [output.shape for output in found])
        return [Part(tuple(output.reshape(-1) for output in found), None)]

    rule = standard_for(standard, name) if isinstance(standard, str) else standard
    found = judge_parts(name, parts, arrays, [dtype for _, dtype in pairs], rule, function, inputs)
    wrong = [(number, one) for number, one in enumerate(found) if not one.passed]
    if wrong:
        raise PrecisionError("\n".join(_text(f"output {number}", one) for number, one in wrong))


@dataclass(frozen=True)
class _Function:
    """A reference that a test has in hand, without a project or a prototype."""

    golden: Callable[..., object]
    dtypes: Sequence[DType]
    attributes: Mapping[str, AttrValue]

    def evaluation(self, inputs: Sequence[Input]) -> Evaluation:
        wide = tuple(
            widen_input(value, dtype) for value, dtype in zip(inputs, self.dtypes, strict=True)
        )
        named = {name: in_single_precision(value) for name, value in self.attributes.items()}

        def outputs(values: Sequence[Input]) -> tuple[Array, ...]:
            return as_outputs(self.golden(*values, **named))

        return Evaluation(outputs, wide, False, getattr(self.golden, "__globals__", None))

    def exactly(self, inputs: Sequence[Input]) -> list[ExactOutput] | None:
        found = self.evaluation(inputs)
        return evaluate_exactly(found.function, found.inputs, found.names)

    def around(
        self, inputs: Sequence[Input], sizes: Sequence[int], positions: Sequence[Array]
    ) -> tuple[list[Input], list[Array]]:
        return list(inputs), list(positions)


def _row(name: str) -> DType:
    found = find_tensor_dtype(name)
    if found is None:
        raise UsageError(f'"{name}" is not a data type', help="one of " + ", ".join(dtype_names()))
    return found


def _text(what: str, result: Comparison) -> str:
    worst = f"\n  worst {result.worst}" if result.worst else ""
    return f"{what} misses the {result.standard} standard for {result.dtype}: {result}{worst}"
