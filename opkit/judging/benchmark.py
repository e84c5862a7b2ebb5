"""Tasks of a public benchmark of Ascend operators: a folder with proto.yaml, golden.py, cases.yaml.

    tasks/metadata/910b2.json       times of the vendor's library, and bounds, by task and case
    tasks/level1/exp/proto.yaml     the operator: inputs and outputs with data types, attributes
                     cases.yaml     input_shape, dtype, attrs, value_range of each case
                     golden.py      a function of torch's tensors, named like the folder

Source: the tasks of cann-bench (hicann/cann-bench) and its documents of these files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from opkit.dtypes import DType, find_dtype
from opkit.errors import UsageError
from opkit.schema import LIST_LENGTH, AttrSpec, AttrValue, OpSpec, TensorSpec
from opkit.testing import Case, Source

__all__ = ["BenchmarkTask", "is_benchmark", "read_benchmark"]

_FILES = ("proto.yaml", "golden.py", "cases.yaml")
_ATTR_TYPES = {
    **dict.fromkeys(("int", "int32", "int64", "int32_t", "int64_t"), "int"),
    **dict.fromkeys(("float", "float32", "double"), "float"),
    "bool": "bool",
    **dict.fromkeys(("str", "string"), "string"),
}
"""An attribute's element type, as tasks write it, and as prototypes do."""


@dataclass(frozen=True)
class BenchmarkTask:
    """What a task's folder says."""

    name: str
    """The folder's, which is the golden's function, too."""
    spec: OpSpec
    cases: tuple[Case, ...]
    base_us: Mapping[str, float]
    """By the case's name: the measured time of the vendor's library."""
    bound_us: Mapping[str, float]
    """By the case's name: the least time that the benchmark takes for possible."""
    left_out: tuple[tuple[str, str], ...]
    """Cases that no kernel can be given here, and why."""
    list_cases: tuple[Case, ...] = ()
    """Those of them whose lists of tensors are longer or shorter than opkit's cases have."""
    list_shapes: Mapping[str, Mapping[str, tuple[tuple[int, ...], ...]]] = field(
        default_factory=dict
    )
    """By the case's name, and the input's: the shapes of such a list."""


def is_benchmark(folder: Path) -> bool:
    """Whether a folder has the files of a task."""
    return all((folder / name).is_file() for name in _FILES)


def read_benchmark(folder: Path, *, seed: int = 0, hardware: str = "910b2") -> BenchmarkTask:
    """Return a task; its golden is not loaded.

    Args:
        seed: of the inputs' values.
        hardware: whose measured times count.
    Raises:
        UsageError: a file is not of the form above; the text says where.
    """
    name = folder.name
    operator = _mapping(_read(folder / "proto.yaml").get("operator"), folder / "proto.yaml")
    rows = _read(folder / "cases.yaml").get("cases")
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{folder / 'cases.yaml'}: cases is {rows!r}, expected a list")
    times = _times(folder, hardware)
    base_us: dict[str, float] = {}
    bound_us: dict[str, float] = {}
    left_out: list[tuple[str, str]] = []
    read: list[tuple[str, Mapping[str, Any], tuple[DType, ...]]] = []
    listed: list[tuple[str, Mapping[str, Any], tuple[DType, ...]]] = []
    for number, row in enumerate(rows):
        where = f"{folder / 'cases.yaml'}: cases[{number}]"
        if not isinstance(row, Mapping):
            raise UsageError(f"{where} is {row!r}, expected a mapping")
        label = f"{name}-{row.get('case_id', number + 1)}"
        found = times.get(label.removeprefix(f"{name}-"), {})
        for target, key in ((base_us, "baseline_perf_us"), (bound_us, "t_hw_us")):
            if isinstance(found.get(key), (int, float)):
                target[label] = float(found[key])
        reason = _unlike(operator, row)
        odd_list = _odd_list(operator, row)
        if reason or odd_list:
            left_out.append((label, reason or odd_list))
        if not reason:
            (listed if odd_list else read).append((label, row, _dtypes(operator, row, where)))
    combinations = list(dict.fromkeys(dtypes for _, _, dtypes in (*read, *listed)))
    lists = {
        at
        for _, row, _ in (*read, *listed)
        for at, shape in enumerate(row.get("input_shape") or ())
        if _is_list(shape)
    }
    spec = _spec(operator, combinations, lists, folder)
    cases, list_cases = (
        tuple(
            _case(spec, label, row, dtypes, combinations.index(dtypes), seed)
            for label, row, dtypes in rows
        )
        for rows in (read, listed)
    )
    list_shapes = {label: _list_shapes(operator, row) for label, row, _ in listed}
    return BenchmarkTask(
        *(name, spec, cases, base_us, bound_us, tuple(left_out), list_cases, list_shapes)
    )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    return _mapping(document, path)


def _mapping(value: object, path: Path) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{path}: {value!r} is no mapping", help="see docs/judge.md: a task")
    return value


def _times(folder: Path, hardware: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the times of a task's cases, from the nearest metadata folder above it."""
    level = folder.resolve().parent
    for above in level.parents:
        path = above / "metadata" / f"{hardware}.json"
        if path.is_file():
            document = json.loads(path.read_text(encoding="utf-8"))
            found: Mapping[str, Mapping[str, Any]] = document.get(level.name, {}).get(
                folder.name, {}
            )
            return found
    return {}


def _tensors(operator: Mapping[str, Any], side: str) -> list[Mapping[str, Any]]:
    return [each for each in operator.get(side) or () if isinstance(each, Mapping)]


def _unlike(operator: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return why opkit has no such case, its lists' lengths aside; empty where it has."""
    for tensor, dtype in zip(_tensors(operator, "inputs"), row.get("dtype") or (), strict=False):
        if isinstance(dtype, list) and len(set(map(str, dtype))) != 1:
            return f"{tensor['name']} is a list of tensors of several data types"
    if any(tensor.get("is_list") for tensor in _tensors(operator, "outputs")) and not any(
        tensor.get("is_list") for tensor in _tensors(operator, "inputs")
    ):
        return "its outputs are a list whose length the attributes say"
    return ""


def _list_shapes(
    operator: Mapping[str, Any], row: Mapping[str, Any]
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the shapes of each input that is a list, by its name."""
    shapes = row.get("input_shape") or []
    return {
        str(tensor["name"]): tuple(map(tuple, shape))
        for tensor, shape in zip(_tensors(operator, "inputs"), shapes, strict=False)
        if _is_list(shape)
    }


def _odd_list(operator: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return which list of tensors is none of opkit's cases; empty where all are."""
    for name, shapes in _list_shapes(operator, row).items():
        if shapes != (shapes[0],) * LIST_LENGTH:
            return f"{name} is a list of other than {LIST_LENGTH} tensors of one shape"
    return ""


def _dtypes(operator: Mapping[str, Any], row: Mapping[str, Any], where: str) -> tuple[DType, ...]:
    """Return the data types of inputs, then of outputs, which cases do not name."""
    inputs = _tensors(operator, "inputs")
    given = row.get("dtype")
    if not isinstance(given, list) or not any(given):
        raise UsageError(f"{where}: dtype is {given!r}, expected a list of data types")
    # A list of tensors has a list of them; `_unlike` knows that they are one.
    said = [each[0] if isinstance(each, list) else each for each in given]
    known = next(str(each) for each in said if each is not None)
    names = []
    for at, tensor in enumerate(inputs):
        name = said[at] if at < len(said) else None
        allowed = [str(each) for each in tensor.get("dtype") or ()]
        # An absent input has none; the prototype's row needs one.
        absent = known if known in allowed or not allowed else allowed[0]
        names.append(absent if name is None else str(name))
    asked = {str(value) for value in (row.get("attrs") or {}).values()}
    for tensor in _tensors(operator, "outputs"):
        allowed = [str(name) for name in tensor.get("dtype") or ()]
        same = [
            names[at]
            for at, other in enumerate(inputs)
            if len(allowed) > 1 and set(allowed) == set(map(str, other.get("dtype") or ()))
        ]
        usual = names[0] if names[0] in allowed or not allowed else allowed[0]
        # Attributes such as output_dtype choose among several.
        chosen = [name for name in allowed if name in asked and len(allowed) > 1]
        names.append((*chosen, *same, usual)[0])
    found = []
    for name in names:
        dtype = find_dtype(name)
        if dtype is None:
            raise UsageError(f'{where}: "{name}" is not a data type of opkit')
        found.append(dtype)
    return tuple(found)


def _spec(
    operator: Mapping[str, Any],
    combinations: Sequence[tuple[DType, ...]],
    lists: Collection[int],
    folder: Path,
) -> OpSpec:
    inputs, outputs = _tensors(operator, "inputs"), _tensors(operator, "outputs")
    made = []
    for at, tensor in enumerate((*inputs, *outputs)):
        optional = "optional" if tensor.get("optional") else "required"
        made.append(
            TensorSpec(
                name=str(tensor["name"]),
                param_type="dynamic" if tensor.get("is_list") or at in lists else optional,
                dtypes=tuple(dtypes[at] for dtypes in combinations),
                formats=("ND",) * len(combinations),
            )
        )
    attrs = []
    for attr in operator.get("attrs") or ():
        kind = _attr_type(str(attr.get("type", "")))
        if kind is None:
            raise UsageError(
                f"{folder / 'proto.yaml'}: attribute {attr.get('name')} has type"
                f" {attr.get('type')!r}, which opkit does not have"
            )
        default = _plain(attr["default"]) if attr.get("default") is not None else None
        attrs.append(AttrSpec(str(attr["name"]), kind, bool(attr.get("required")), default))
    return OpSpec(
        op=str(operator.get("name") or folder.name),
        name=folder.name,
        inputs=tuple(made[: len(inputs)]),
        outputs=tuple(made[len(inputs) :]),
        attrs=tuple(attrs),
        source=folder / "proto.yaml",
    )


def _attr_type(text: str) -> str | None:
    """Return a prototype's attribute type: `int64_t`, `List[int]`, `ListInt`, `int[]`."""
    word = text.replace(" ", "").lower()
    element = word.removeprefix("list").removesuffix("[]").strip("[]")
    kind = _ATTR_TYPES.get(element)
    return f"list_{kind}" if kind is not None and element != word else kind


def _is_list(shape: Any) -> bool:
    return isinstance(shape, list) and bool(shape) and isinstance(shape[0], list)


def _plain(value: Any) -> AttrValue:
    return tuple(map(_plain, value)) if isinstance(value, list) else value  # type: ignore[return-value]


def _case(
    spec: OpSpec,
    label: str,
    row: Mapping[str, Any],
    dtypes: tuple[DType, ...],
    variant: int,
    seed: int,
) -> Case:
    shapes: list[tuple[int, ...] | None] = []
    lists = set()
    given = row.get("input_shape") or []
    for at, tensor in enumerate(spec.inputs):
        shape: Any = given[at] if at < len(given) else None
        if _is_list(shape):
            lists.add(tensor.name)
            shape = shape[0]
        shapes.append(None if shape is None else tuple(shape))
    attrs = dict(row.get("attrs") or {})
    return Case(
        op=spec.op,
        kernel=spec.name,
        variant=variant,
        dtypes=dtypes,
        shape=next((shape for shape in shapes if shape is not None), ()),
        shapes=tuple(shapes),
        attrs=tuple(
            (attr.name, _plain(attrs.get(attr.name, attr.default)))
            for attr in spec.attrs
            if attrs.get(attr.name, attr.default) is not None
        ),
        seed=seed,
        distribution="uniform",
        input_names=tuple(tensor.name for tensor in spec.inputs),
        label=label,
        sources=_sources(row.get("value_range"), len(spec.inputs)),
        lists=frozenset(lists),
    )


def _sources(ranges: Any, count: int) -> tuple[Source | None, ...]:
    """Return where values come from: one range for all inputs, or one for each."""
    if not isinstance(ranges, list) or not ranges:
        return ()
    listed = ranges if any(isinstance(each, list) for each in ranges) else [ranges] * count
    return tuple(_source(listed[at]) if at < len(listed) else None for at in range(count))


def _source(limits: Any) -> Source | None:
    # Those of a list's tensors: one range for all of them.
    while _is_list(limits):
        limits = limits[0]
    if not isinstance(limits, list) or len(limits) != 2:
        return None
    low, high = (float(limit) for limit in limits)
    if math.isnan(low) or math.isnan(high) or low == high:
        return Source(values=(low,))
    if math.isinf(low) or math.isinf(high):
        return Source("edge")
    return Source("uniform", low, high)
