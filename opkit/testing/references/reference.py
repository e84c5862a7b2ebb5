"""What a case's outputs should be: references in double precision and in the operator's own.

A formula's reference is asked part by part, so that no array of float64 as long as the tensors ever
exists. Whether that is possible the prototype says: its formulas are elementwise, or row by row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np

from opkit.dtypes import DType
from opkit.errors import OperatorError, UsageError
from opkit.processes import TooLong, alarm_after
from opkit.scaffold import formula_golden
from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases import (
    Case,
    Golden,
    as_outputs,
    evaluate_expression,
    is_expression,
    is_unsaid,
    load_function,
    output_tensors,
    row_inputs,
    works_by_row,
)
from opkit.testing.documented import reference_package
from opkit.testing.numbers import (
    Array,
    Evaluation,
    ExactOutput,
    Input,
    evaluate_exactly,
    is_complex,
    is_float,
    narrow,
    widen,
    widen_input,
)

__all__ = ["Part", "Reference", "find_reference", "in_single_precision"]

PART = 1 << 20
_WRAPPING = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"})


@dataclass(frozen=True)
class Part:
    """Consecutive elements of every output, flat."""

    golden: tuple[Array, ...]
    second: tuple[Array, ...] | None


@dataclass(frozen=True)
class Reference:
    """One case's references."""

    case: Case
    spec: OpSpec
    golden: Golden | None
    wants_second: bool
    seconds: float | None = None
    """What each call of it may take; None: as long as it likes."""

    def whole(
        self, inputs: Sequence[Input], actual: Sequence[Array] = ()
    ) -> tuple[tuple[Array, ...], Part]:
        """Return the outputs as arrays of their shapes, and flat with the second reference.

        Args:
            actual: what the kernel wrote: whole numbers beyond their type may be its limit there,
                and an output that the reference gives None for is the very array.
        """
        wide = [
            widen_input(value, dtype)
            for value, dtype in zip(inputs, self.case.dtypes, strict=False)
        ]
        golden = self._golden(wide, actual)
        second = self._second(inputs) if self.wants_second else None
        known = golden
        if actual and any(map(is_unsaid, golden)) and len(actual) == len(golden):
            # What the reference says nothing of is as the kernel wrote it.
            pairs = list(zip(golden, actual, output_tensors(self.case, self.spec), strict=True))
            golden = tuple(one if is_unsaid(output) else output for output, one, _ in pairs)
            known = tuple(
                widen(one, dtype) if is_unsaid(output) else output
                for output, one, (_, dtype) in pairs
            )
            if second is not None:
                second = tuple(
                    one if is_unsaid(other) else other
                    for one, other in zip(known, second, strict=True)
                )
        flat = tuple(output.reshape(-1) for output in known)
        other = None if second is None else tuple(output.reshape(-1) for output in second)
        return golden, Part(flat, other)

    def evaluation(self, inputs: Sequence[Input]) -> Evaluation:
        """Return the golden at these inputs, as the condition of an operator is taken from it."""
        wide = tuple(
            widen_input(value, dtype)
            for value, dtype in zip(inputs, self.case.dtypes, strict=False)
        )
        names = vars(self.golden.module) if self.golden and not self.case.golden else None
        return Evaluation(self._said, wide, self._by_element, names)

    def exactly(self, inputs: Sequence[Input]) -> list[ExactOutput] | None:
        """Return the golden for real numbers at these inputs; None where it has no such form."""
        found = self.evaluation(inputs)
        return evaluate_exactly(found.function, found.inputs, found.names)

    @property
    def _by_element(self) -> bool:
        return not self.case.golden and self.spec.has_formula and not works_by_row(self.spec)

    def around(
        self, inputs: Sequence[Input], sizes: Sequence[int], positions: Sequence[Array]
    ) -> tuple[list[Input], list[Array]]:
        """Return inputs that are enough for some elements of each output, and where they are then.

        Args:
            sizes: elements of each output.
            positions: flat, one array for each output.
        """
        arrays = [value for value in inputs if isinstance(value, np.ndarray)]
        same_shape = all(array.shape == self.case.shape for array in arrays)
        if self._by_element and same_shape and len(arrays) == len(inputs):
            chosen = np.unique(np.concatenate(positions))
            few: list[Input] = [array.reshape(-1)[chosen] for array in arrays]
            return few, [np.searchsorted(chosen, found) for found in positions]
        views = self._row_views(arrays) if len(arrays) == len(inputs) else None
        rows = math.prod(self.case.shape[:-1])
        if views is None or rows < 2 or any(size % rows or size < rows for size in sizes):
            return list(inputs), list(positions)
        per_row = [size // rows for size in sizes]
        chosen = np.unique(
            np.concatenate([f // n for f, n in zip(positions, per_row, strict=True)])
        )
        few = [array[chosen] if sliced else array for array, sliced in views]
        moved = [
            np.searchsorted(chosen, f // n) * n + f % n
            for f, n in zip(positions, per_row, strict=True)
        ]
        return few, moved

    def parts(self, inputs: Sequence[Input]) -> Iterator[Part] | None:
        """Return the references part by part; None where only the whole can be had."""
        if self.case.golden or not self.spec.has_formula:
            return None
        arrays = [value for value in inputs if isinstance(value, np.ndarray)]
        if math.prod(self.case.shape) <= PART or len(arrays) < len(inputs):
            return None
        slices = self._slices(arrays)
        return None if slices is None else (self.whole(part)[1] for part in slices)

    def _slices(self, inputs: list[Array]) -> Iterator[list[Array]] | None:
        shape = self.case.shape
        if not works_by_row(self.spec):
            if any(array.shape != shape for array in inputs):
                return None
            flat = [array.reshape(-1) for array in inputs]
            starts = range(0, flat[0].size, PART)
            return ([array[start : start + PART] for array in flat] for start in starts)
        views = self._row_views(inputs)
        if views is None:
            return None
        rows, columns = math.prod(shape[:-1]), shape[-1]
        step = max(1, PART // max(columns, 1))
        return (
            [array[start : start + step] if sliced else array for array, sliced in views]
            for start in range(0, rows, step)
        )

    def _row_views(self, inputs: list[Array]) -> list[tuple[Array, bool]] | None:
        """Return each input by rows, and whether it has any; None where the operator has none."""
        if self.case.golden or not self.spec.has_formula or not self.case.shape:
            return None
        shape = self.case.shape
        rows, columns = math.prod(shape[:-1]), shape[-1]
        per_row = row_inputs(self.spec)
        views: list[tuple[Array, bool]] = []
        for tensor, array in zip(self.spec.inputs, inputs, strict=True):
            if tensor.name in per_row and array.shape == shape[:-1]:
                views.append((array.reshape(rows), True))
            elif array.shape == shape:
                views.append((array.reshape(rows, columns), True))
            elif array.shape == (columns,):
                views.append((array, False))
            else:
                return None
        return views

    def _said(self, wide: Sequence[Input]) -> tuple[Array, ...]:
        """Return the outputs, no elements of those that the reference says nothing of."""
        return tuple(np.zeros(0) if is_unsaid(one) else one for one in self._golden(wide))

    def _golden(self, wide: Sequence[Input], actual: Sequence[Array] = ()) -> tuple[Array, ...]:
        with self._limited():
            found = self._given(wide, actual)
        tensors = output_tensors(self.case, self.spec)
        for output, (name, dtype) in zip(found, tensors, strict=False):
            kind = output.dtype.kind
            if kind in "USMm" or (kind == "c" and not is_complex(dtype)):
                raise OperatorError(
                    f"{self._name}: output {name} is {dtype.name}, the reference gives"
                    f" {output.dtype.name}",
                    help="return numbers; of complex ones the real part, if that is what is meant",
                )
        return found

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """End what never comes back, by name; of a call into C, the process with it."""
        from opkit import runtime

        if self.seconds is None:
            yield
            return
        try:
            with alarm_after(self.seconds), runtime.time_limit(self.seconds, counts_host=True):
                yield
        except TooLong as error:
            raise OperatorError(
                f"{self._name}: no result after {self.seconds:g} s",
                help="look for endless loops in it; --timeout SECONDS is its limit, too; 0: none",
            ) from error

    @property
    def _name(self) -> str:
        if self.case.golden or self.golden is None:
            return f"the reference {self.case.golden}"
        return f"{self.golden.path}: {self.case.kernel}"

    def _given(self, wide: Sequence[Input], actual: Sequence[Array]) -> tuple[Array, ...]:
        case = self.case
        attrs = {name: in_single_precision(value) for name, value in case.attrs}
        if case.golden and is_expression(case.golden):
            found = evaluate_expression(case.golden, self.spec, wide, attrs=attrs)
            dtypes = [dtype for _, dtype in output_tensors(case, self.spec)]
            return _in_range(found, dtypes, actual)
        if case.golden and ".py:" not in case.golden:
            return _library_outputs(case.golden, wide)
        if case.golden:
            function = load_function(case.golden, Path())
            arguments: list[object] = list(wide)
            named: dict[str, object] = dict(attrs)
            if case.golden_takes_records:
                arguments, named = _records(case, self.spec, wide), {}
            try:
                with np.errstate(all="ignore"):
                    return as_outputs(function(*arguments, **named))
            except (Exception, SystemExit) as error:
                text = f"{case.golden}: {type(error).__name__}: {error}"
                raise OperatorError(text) from error
        assert self.golden is not None
        return self.golden.reference(case.kernel, wide, attrs=attrs)

    def _second(self, inputs: Sequence[Input]) -> tuple[Array, ...]:
        """Return results of the operator's own precision: computed in float32, rounded to it."""
        with self._limited():
            return self._given_in_single(inputs)

    def _given_in_single(self, inputs: Sequence[Input]) -> tuple[Array, ...]:
        case = self.case
        single = [
            _single(widen_input(value, dtype), dtype)
            for value, dtype in zip(inputs, case.dtypes, strict=False)
        ]
        if case.golden and is_expression(case.golden):
            found = evaluate_expression(case.golden, self.spec, single, attrs=dict(case.attrs))
        elif self.golden is not None and self.golden.has_second(case.kernel):
            found = self.golden.second(case.kernel, single, attrs=dict(case.attrs))
        elif self.spec.has_formula:
            found = _golden_in_single(self.spec).reference(
                self.spec.name, single, attrs=dict(case.attrs)
            )
        else:
            raise UsageError(
                f"{case.kernel}: the standard needs a second reference, and there is none",
                help=f"write {case.kernel}_same_precision in golden.py, which computes in float32",
            )
        dtypes = [dtype for _, dtype in output_tensors(case, self.spec)]
        return tuple(
            widen(narrow(output, dtype), dtype)
            if (is_float(dtype) or is_complex(dtype)) and not is_unsaid(output)
            else output
            for output, dtype in zip(found, dtypes, strict=True)
        )


def find_reference(
    case: Case,
    spec: OpSpec,
    golden: Golden | None,
    *,
    wants_second: bool,
    seconds: float | None = None,
) -> Reference | None:
    """Return the references of a case, None where nothing says what its result should be.

    Args:
        seconds: what each call of them may take; None: as long as it likes.
    """
    if not case.golden and (golden is None or not golden.has(case.kernel)):
        return None
    return Reference(case, spec, golden, wants_second, seconds)


def in_single_precision(value: AttrValue) -> AttrValue:
    """Return an attribute as operators get it: its numbers with a fraction are float32."""
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    if isinstance(value, tuple):
        rounded: AttrValue = tuple(in_single_precision(item) for item in value)  # type: ignore[assignment]
        return rounded
    return value


def _in_range(
    outputs: tuple[Array, ...], dtypes: Sequence[DType], actual: Sequence[Array]
) -> tuple[Array, ...]:
    """Return whole numbers within their types: modulo the range, as torch and NumPy compute, or the
    limit where the kernel has that, as what Cast narrows does."""
    if len(outputs) != len(dtypes):
        return outputs
    written: Sequence[Array | None] = (
        actual if len(actual) == len(outputs) else [None] * len(dtypes)
    )
    return tuple(
        _whole_in_range(output, dtype, array)
        if output.dtype == np.int64 and dtype.name in _WRAPPING
        else output
        for output, dtype, array in zip(outputs, dtypes, written, strict=True)
    )


def _whole_in_range(output: Array, dtype: DType, actual: Array | None) -> Array:
    if dtype.name == "uint64":
        return output.astype(np.uint64)
    wrapped: Array = output.astype(dtype.name).astype(np.int64)
    if actual is None or actual.shape != output.shape:
        return wrapped
    limits = np.iinfo(dtype.name)
    saturated = np.clip(output, limits.min, limits.max)
    return np.where((saturated != output) & (actual == saturated), saturated, wrapped)


@lru_cache(maxsize=16)
def _golden_in_single(spec: OpSpec) -> Golden:
    """Return the golden of an operator's formulas whose every operation is rounded to float32."""
    # Its gradient is an operator of its own, with formulas of its own.
    text = formula_golden([replace(spec, gradient=False)], precision="float32") or ""
    module = ModuleType(f"_opkit_{spec.name}_in_single_precision")
    exec(compile(text, f"<formulas of {spec.name} in float32>", "exec"), vars(module))
    return Golden(spec.source, module)


def _single(value: Input, dtype: DType) -> Input:
    kind = np.float32 if is_float(dtype) else np.complex64 if is_complex(dtype) else None
    if value is None or kind is None:
        return value
    if isinstance(value, list):
        return [array.astype(kind) for array in value]
    return value.astype(kind)


def _records(case: Case, spec: OpSpec, wide: Sequence[Input]) -> list[object]:
    """Return msOpST's arguments: a dict for each input and output, then the attributes' values."""
    tensors = (*spec.inputs, *spec.outputs)
    values = (*wide, *(None for _ in spec.outputs))
    records: list[object] = []
    for tensor, dtype, value in zip(tensors, case.dtypes, values, strict=True):
        shape = list(value.shape) if isinstance(value, np.ndarray) else None
        records.append(
            {
                "name": tensor.name,
                "value": value,
                "shape": shape,
                "dtype": dtype.name,
                "format": tensor.formats[case.variant],
            }
        )
    return [*records, *(value for _, value in case.attrs)]


def _library_outputs(name: str, wide: Sequence[Input]) -> tuple[Array, ...]:
    """Return what a function of an installed package gives, such as `torch.square`."""
    package, _, path = name.partition(".")
    module = reference_package(package, wanted_by=name)
    function: object = module
    for part in path.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise UsageError(f"the case's reference is {name}, which {package} does not have")
    # torch's functions take its own tensors; NumPy's take arrays.
    convert = getattr(module, "from_numpy", None) or np.asarray
    result = function(
        *(
            [convert(array) for array in value]
            if isinstance(value, list)
            else None
            if value is None
            else convert(value)
            for value in wide
        )
    )
    return as_outputs(result)
