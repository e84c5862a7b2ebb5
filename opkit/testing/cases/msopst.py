"""Cases from the JSON that msOpST's `create` writes and its `run` takes.

Each of its fields that says something about a case is read. Lists multiply: data type with format,
shape, distribution and value range each give sub-cases, the n-th entry of every tensor together.
`is_const`, `ori_format` and `ori_shape` say something about a graph compiler that is not here.

Source: msOpST user guide, test case definition file (Ascend/msopgen, tools/msopst).
"""

from __future__ import annotations

import itertools
import math
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from opkit.errors import OperatorError, UsageError
from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases.case_reading import Entry, attr_value
from opkit.testing.cases.cases import Case, Shape, distinct, plain_attr
from opkit.testing.cases.golden import load_function
from opkit.testing.cases.values import Source

__all__ = ["is_msopst", "msopst_cases"]

_CASE_FIELDS = (
    *("case_name", "op", "error_threshold", "st_mode", "run_torch_api", "expect", "fuzz_impl"),
    *("fuzz_case_num", "calc_expect_func_file", "input_desc", "output_desc", "attr"),
)
_TENSOR_FIELDS = (
    *("name", "format", "ori_format", "type", "shape", "ori_shape", "typical_shape"),
    *("shape_range", "is_const", "data_distribute", "value_range", "value"),
)
_ATTR_FIELDS = ("name", "type", "value")
_LEFT_OUT = ("UNDEFINED", "RESERVED")
_MOST_CASES = 1000
_MOST_FUZZ_CASES = 2000
# What an unknown size of a shape may be where its range has no upper end.
_UNBOUNDED_SIZE = 64


def is_msopst(document: object) -> bool:
    """Whether a document looks like msOpST's: a list of cases with input_desc."""
    return (
        isinstance(document, list)
        and bool(document)
        and all(isinstance(item, Mapping) and "input_desc" in item for item in document)
    )


def msopst_cases(
    path: Path, document: object, specs: Sequence[OpSpec], *, seed: int = 0
) -> tuple[Case, ...]:
    """Return the cases of such a document.

    Raises:
        UsageError: a field is wrong or asks for what opkit cannot do; the text says where.
        OperatorError: the user's own fuzz function fails.
    """
    assert isinstance(document, list)
    cases: list[Case] = []
    for number, value in enumerate(document):
        entry = Entry.of(path, f"[{number}]", value)
        entry.only(_CASE_FIELDS)
        if entry.text("fuzz_impl"):
            cases += _fuzzed(entry, specs, seed)
        else:
            cases += _sub_cases(entry, specs, seed, entry.text("case_name"))
    if len(cases) > _MOST_CASES:
        raise UsageError(f"{path}: {len(cases)} cases; msOpST's own limit is {_MOST_CASES}")
    return distinct(cases)


def _fuzzed(entry: Entry, specs: Sequence[OpSpec], seed: int) -> list[Case]:
    """Return a case for each call of the fuzz function, which fills fields in."""
    count = entry.fields.get("fuzz_case_num", 1)
    if not isinstance(count, int) or not 1 <= count <= _MOST_FUZZ_CASES:
        raise entry.fail(f"fuzz_case_num is {count!r}, expected 1 to {_MOST_FUZZ_CASES}")
    function = load_function(entry.text("fuzz_impl"), entry.path.parent)
    cases = []
    for number in range(count):
        # The function draws from these two streams: seeded, its cases are the same every time.
        stream = zlib.crc32(f"{seed} {entry.text('case_name')} {number}".encode())
        random.seed(stream)
        np.random.seed(stream)
        filled = _filled(entry, _call(function, entry), number)
        cases += _sub_cases(filled, specs, seed, f"{entry.text('case_name')}_fuzz_{number + 1}")
    return cases


def _call(function: Callable[..., object], entry: Entry) -> Mapping[str, Mapping[str, object]]:
    try:
        found = function()
    except Exception as error:
        raise OperatorError(
            f"{entry.path}: {entry.where}: {entry.text('fuzz_impl')} failed:"
            f" {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, Mapping):
        raise entry.fail(f"{entry.text('fuzz_impl')} returned {found!r}, expected a dict")
    return found


def _filled(entry: Entry, found: Mapping[str, Mapping[str, object]], number: int) -> Entry:
    fields = dict(entry.fields)
    for part in ("input_desc", "output_desc", "attr"):
        items = []
        for item in _list(fields.get(part)):
            given = (found.get(part) or {}).get(str(item.get("name")))
            items.append({**item, **(given if isinstance(given, Mapping) else {})})
        fields[part] = items
    return Entry(entry.path, f"{entry.where} (fuzz case {number + 1})", fields)


def _list(value: object) -> list[dict[str, object]]:
    return [dict(item) for item in value] if isinstance(value, list) else []


def _options(value: object, nested: bool) -> list[object]:
    """Return a field's alternatives: a single value is a list of one."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    if not isinstance(value, list):
        return [value]
    if nested and not (value and all(isinstance(item, (list, tuple, str)) for item in value)):
        return [value]
    return list(value)


class _Tensor:
    """One tensor's alternatives, by field."""

    def __init__(self, entry: Entry) -> None:
        entry.only(_TENSOR_FIELDS)
        self.entry = entry
        fields = entry.fields
        self.types = _options(fields.get("type", "UNDEFINED"), nested=False)
        self.formats = _options(fields.get("format", "ND"), nested=False)
        self.shapes = _options(fields.get("shape", []), nested=True)
        self.distributions = _options(fields.get("data_distribute", "uniform"), nested=False)
        self.ranges = _options(fields.get("value_range"), nested=True)
        self.lengths = tuple(map(len, (self.types, self.shapes, self.distributions, self.ranges)))

    def dtype_name(self, number: int) -> str:
        return str(self.types[min(number, len(self.types) - 1)])

    @property
    def is_left_out(self) -> bool:
        return all(str(name).upper() in _LEFT_OUT for name in self.types)

    def shape(self, number: int, stream: random.Random) -> Shape:
        value = self.shapes[min(number, len(self.shapes) - 1)]
        sizes = list(value) if isinstance(value, (list, tuple)) else [value]
        if -1 not in sizes:
            return self.entry.shape("shape", sizes)
        typical = self.entry.fields.get("typical_shape")
        if typical is not None:
            return self.entry.shape("typical_shape", _options(typical, nested=True)[0])
        ranges = iter(_options(self.entry.fields.get("shape_range", [[1, -1]]), nested=True))
        last: object = [1, -1]
        for axis, size in enumerate(sizes):
            if size != -1:
                continue
            last = next(ranges, last)
            low, high = self.entry.shape("shape_range", [abs(int(v)) for v in _pair(last)])
            upper = _UNBOUNDED_SIZE if _pair(last)[1] == -1 else high
            sizes[axis] = stream.randint(low, max(low, upper))
        return self.entry.shape("shape", sizes)

    def source(self, distribution: int, bounds: int) -> Source:
        name = str(self.distributions[min(distribution, len(self.distributions) - 1)])
        limits = self.ranges[min(bounds, len(self.ranges) - 1)]
        values = self.entry.fields.get("value")
        if isinstance(values, np.ndarray):
            values = values.tolist()
        if values is not None and not isinstance(values, (list, str)):
            values = [values]
        if isinstance(values, list) and values and isinstance(values[0], str):
            values = values[0]
        return self.entry.source(name, limits, values)


def _pair(value: object) -> tuple[int, int]:
    return (int(value[0]), int(value[1])) if isinstance(value, (list, tuple)) else (1, -1)


def _sub_cases(entry: Entry, specs: Sequence[OpSpec], seed: int, name: str) -> list[Case]:
    spec = entry.spec(specs, entry.text("op"))
    inputs = _tensors(entry, "input_desc", len(spec.inputs), spec)
    outputs = _tensors(entry, "output_desc", len(spec.outputs), spec)
    used = [tensor for tensor in inputs if not tensor.is_left_out]
    counts = [max((t.lengths[axis] for t in used), default=1) for axis in range(4)]
    for axis, what in enumerate(("type", "shape", "data_distribute", "value_range")):
        for tensor in used:
            if tensor.lengths[axis] not in (1, counts[axis]):
                raise tensor.entry.fail(
                    f"{what} has {tensor.lengths[axis]} entries, another input has {counts[axis]}",
                    "give every input as many, or one",
                )
    standard, limits = _threshold(entry)
    golden, takes_records = _expectation(entry)
    expect = entry.text("expect", "success")
    if expect not in ("success", "failed"):
        raise entry.fail(f'expect is "{expect}", expected success or failed')
    cases: list[Case] = []
    for indices in itertools.product(*(range(count) for count in counts)):
        dtype, shape, distribution, bounds = indices
        stream = random.Random(zlib.crc32(f"{seed} {name} {indices}".encode()))
        variant = _variant(entry, spec, inputs, outputs, dtype)
        shapes = [None if t.is_left_out else t.shape(shape, stream) for t in inputs]
        sources = [None if t.is_left_out else t.source(distribution, bounds) for t in inputs]
        main = max((s for s in shapes if s is not None), key=math.prod, default=())
        number = len(cases) + 1
        total = math.prod(counts)
        cases.append(
            Case(
                op=spec.op,
                kernel=spec.name,
                variant=variant,
                dtypes=spec.variant_dtypes(variant),
                shape=main,
                shapes=tuple(shapes),
                attrs=_attrs(entry, spec),
                seed=seed,
                distribution="uniform",
                label=name if total == 1 else f"{name}_{number:03d}",
                input_names=tuple(tensor.name for tensor in spec.inputs),
                sources=tuple(sources),
                expects_failure=expect == "failed",
                standard=standard,
                limits=limits,
                golden=golden,
                golden_takes_records=takes_records,
            )
        )
    return cases


def _tensors(entry: Entry, part: str, count: int, spec: OpSpec) -> list[_Tensor]:
    found = [
        _Tensor(Entry.of(entry.path, f"{entry.where}.{part}[{number}]", value))
        for number, value in enumerate(_list(entry.fields.get(part)))
    ]
    if len(found) != count:
        raise entry.fail(f"{part} has {len(found)} tensors, {spec.op} has {count}")
    return found


def _variant(
    entry: Entry, spec: OpSpec, inputs: list[_Tensor], outputs: list[_Tensor], number: int
) -> int:
    wanted = [
        None if t.is_left_out else t.entry.dtype(t.dtype_name(number)) for t in (*inputs, *outputs)
    ]
    for variant in range(spec.variant_count):
        have = spec.variant_dtypes(variant)
        if all(want in (None, dtype) for want, dtype in zip(wanted, have, strict=True)):
            return variant
    names = ", ".join("none" if dtype is None else dtype.name for dtype in wanted)
    raise entry.fail(f"{spec.op} has no variant for the types {names}")


def _attrs(entry: Entry, spec: OpSpec) -> tuple[tuple[str, AttrValue], ...]:
    given: dict[str, object] = {}
    for number, item in enumerate(_list(entry.fields.get("attr"))):
        attr = Entry.of(entry.path, f"{entry.where}.attr[{number}]", item)
        attr.only(_ATTR_FIELDS)
        given[attr.text("name")] = item.get("value")
    names = [attr.name for attr in spec.attrs]
    Entry(entry.path, f"{entry.where}.attr", given).only(names)
    return tuple(
        (a.name, attr_value(entry, a.type, given[a.name]) if a.name in given else plain_attr(a))
        for a in spec.attrs
    )


def _threshold(entry: Entry) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Return the standard and its numbers that error_threshold [t1, t2] asks for."""
    value = entry.fields.get("error_threshold")
    if value in (None, "", []):
        return "", ()
    if not isinstance(value, list) or len(value) != 2:
        raise entry.fail(f"error_threshold is {value!r}, expected [relative error, share]")
    return "msopst", (("rtol", entry.number(value[0])), ("unmatched", entry.number(value[1])))


def _expectation(entry: Entry) -> tuple[str, bool]:
    """Return the reference that the case names, and whether it takes msOpST's dicts."""
    function = entry.text("calc_expect_func_file")
    if function:
        file, _, name = function.rpartition(":")
        return f"{(entry.path.parent / file).resolve()}:{name}", True
    mode, api = entry.text("st_mode"), entry.text("run_torch_api")
    if mode == "ms_python_train":
        raise entry.fail("st_mode ms_python_train needs MindSpore, which opkit does not drive")
    if mode not in ("", "pt_python_train"):
        raise entry.fail(f'st_mode is "{mode}", expected pt_python_train')
    return (api if api.startswith("torch") else f"torch.{api}") if api else "", False
