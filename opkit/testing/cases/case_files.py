"""Cases from a file: `cases.yaml` or JSON of our own, or msOpST's JSON.

Ours, in short; only `shape` is needed where the project has one operator:

    cases:
      - name: tail_of_a_tile
        op: gelu_custom
        dtype: [float16, float32]       # of the first input; every variant without it
        shape: [2, 1023]                # a list of shapes makes a case of each
        shapes: {gamma: [1023]}         # inputs that differ from it; null: left out
        attrs: {epsilon: [1.0e-5, 0.1]} # several values make a case of each
        distribution: uniform           # or {x: uniform, gamma: ones}
        range: [-1, 1]                  # or {x: [-1, 1]}
        values: {x: [1, 2, 3]}          # or a file: {x: x.npy}
        seed: 3
        standard: mixed
        golden: other_golden.py:function
        expect: failure                 # passes when the operator refuses or faults

`generated: false` beside `cases` leaves the generated cases out; `golden` beside it is the
reference of every case without one of its own, the generated ones too. docs/cases.md says all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import yaml

from opkit.errors import cannot_write
from opkit.files import written_aside
from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases.case_reading import Entry, attr_value, read_document
from opkit.testing.cases.cases import (
    Case,
    Shape,
    ShapeRule,
    case_variants,
    distinct,
    input_shapes,
    plain_attr,
)
from opkit.testing.cases.expressions import check_expression, is_expression
from opkit.testing.cases.msopst import is_msopst, msopst_cases
from opkit.testing.cases.values import Source
from opkit.testing.numbers import find_standard

__all__ = ["CASE_FILES", "golden_of_file", "load_cases", "replaces_generated", "save_case"]

# Where a project's own cases are looked for, relative to its folder.
CASE_FILES = ("tests/cases.yaml", "tests/cases.json")

_FIELDS = (
    *("name", "op", "dtype", "shape", "shapes", "attrs", "distribution", "range", "values"),
    *("seed", "standard", "golden", "expect"),
)


_WHOLE = ("cases", "generated", "golden")


def load_cases(
    path: Path,
    specs: Sequence[OpSpec],
    *,
    seed: int = 0,
    shape_rules: Mapping[str, ShapeRule | None] | None = None,
) -> tuple[Case, ...]:
    """Return the cases of a file, ours or msOpST's; which one its content tells.

    Args:
        specs: the project's operators.
        seed: for cases that give none.
        shape_rules: by kernel name; shapes of inputs that the file does not give.
    Raises:
        UsageError: the file is wrong; the text says where.
    """
    document = read_document(path)
    if is_msopst(document):
        return _from(path, msopst_cases(path, document, specs, seed=seed))
    whole = Entry.of(path, "the file", document)
    whole.only(_WHOLE)
    listed = whole.fields.get("cases") or []
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise whole.fail(f"cases is {listed!r}, expected a list")
    cases: list[Case] = []
    for number, value in enumerate(listed):
        entry = Entry.of(path, f"cases[{number}]", value)
        entry.only(_FIELDS)
        spec = entry.spec(specs, entry.text("op"))
        rule = (shape_rules or {}).get(spec.name)
        golden = _golden(entry, entry.text("golden"), spec) or _golden_of(whole, spec)
        cases += _entry_cases(entry, spec, seed, rule, golden)
    return _from(path, distinct(cases))


def replaces_generated(path: Path) -> bool:
    """Return whether a file says `generated: false`: its cases are then all that there are.

    Raises:
        UsageError: the file cannot be read, or says something else.
    """
    document = read_document(path)
    given = document.get("generated", True) if isinstance(document, Mapping) else True
    if not isinstance(given, bool):
        raise Entry.of(path, "the file", document).fail(
            f"generated is {given!r}, expected true or false"
        )
    return not given


def _from(path: Path, cases: Sequence[Case]) -> tuple[Case, ...]:
    return tuple(replace(case, origin=path) for case in cases)


def _entry_cases(
    entry: Entry, spec: OpSpec, seed: int, rule: ShapeRule | None, golden: str
) -> list[Case]:
    variants = _variants(entry, spec)
    shapes = _shapes(entry)
    expect = entry.text("expect", "success")
    if expect not in ("success", "failure", "failed"):
        raise entry.fail(f'expect is "{expect}", expected success or failure')
    standard = entry.text("standard")
    if standard and standard != "double":
        find_standard(standard)
    own_seed = entry.fields.get("seed", seed)
    if not isinstance(own_seed, int) or own_seed < 0:
        raise entry.fail(f"seed is {own_seed!r}, expected a whole number from 0")
    usual, sources = _sources(entry, spec)
    name = entry.text("name")
    choices = _attrs(entry, spec)
    many = len(variants) * len(shapes) > 1
    cases = []
    for variant, shape in product(variants, shapes):
        for attrs, told in choices:
            case = Case(
                op=spec.op,
                kernel=spec.name,
                variant=variant,
                dtypes=spec.variant_dtypes(variant),
                shape=shape,
                shapes=_input_shapes(entry, spec, shape, rule),
                attrs=attrs,
                seed=own_seed,
                distribution=usual,
                input_names=tuple(tensor.name for tensor in spec.inputs),
                sources=sources,
                expects_failure=expect != "success",
                standard=standard,
                golden=golden,
            )
            label = f"{name}-{case.name}" if name and many else name
            if label or told:
                case = replace(case, label="-".join([label or case.name, *told]))
            cases.append(case)
    return cases


def golden_of_file(path: Path, spec: OpSpec) -> str:
    """Return the reference that a file has for an operator's cases; empty where it has none.

    Raises:
        UsageError: the file cannot be read, or the reference is wrong.
    """
    document = read_document(path)
    if is_msopst(document):
        return ""
    return _golden_of(Entry.of(path, "the file", document), spec)


def _golden_of(whole: Entry, spec: OpSpec) -> str:
    """Return the reference beside `cases`: one for all, or one for each operator by name."""
    given = whole.fields.get("golden", "")
    if isinstance(given, Mapping):
        given = given.get(spec.name, given.get(spec.op, ""))
    if not isinstance(given, str):
        raise whole.fail(f"golden is {given!r}, expected a call such as torch.add(x, y)")
    return _golden(whole, given, spec)


def _golden(entry: Entry, golden: str, spec: OpSpec) -> str:
    """Return a case's reference, checked; the file of FILE.py:FUNCTION relative to the cases'."""
    if not golden:
        return ""
    if is_expression(golden):
        check_expression(golden, spec, where=f"{entry.path}: {entry.where}: golden")
        return golden
    if ".py:" not in golden:
        return golden
    file, _, name = golden.rpartition(":")
    return f"{(entry.path.parent / file).resolve()}:{name}"


def _variants(entry: Entry, spec: OpSpec) -> list[int]:
    wanted = entry.fields.get("dtype")
    if wanted is None:
        return case_variants(spec)
    names = wanted if isinstance(wanted, list) else [wanted]
    chosen = []
    for name in names:
        dtype = entry.dtype(name)
        having = [n for n in case_variants(spec) if spec.variant_dtypes(n)[0] == dtype]
        if not having:
            have = dict.fromkeys(
                spec.variant_dtypes(number)[0].name for number in range(spec.variant_count)
            )
            raise entry.fail(
                f"{spec.op} has no variant whose first tensor is {dtype.name}",
                "it has " + ", ".join(have),
            )
        chosen += having
    return chosen


def _shapes(entry: Entry) -> list[Shape]:
    if "shape" not in entry.fields:
        raise entry.fail("shape is missing", "write shape: [2, 1023]")
    value = entry.fields["shape"]
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return [entry.shape("shape", item) for item in value]
    return [entry.shape("shape", value)]


def _input_shapes(
    entry: Entry, spec: OpSpec, shape: Shape, rule: ShapeRule | None
) -> tuple[Shape | None, ...]:
    usual = dict(
        zip([tensor.name for tensor in spec.inputs], input_shapes(spec, shape, rule), strict=True)
    )
    given = Entry.of(entry.path, f"{entry.where}.shapes", entry.fields.get("shapes") or {})
    given.only(list(usual))
    result: list[Shape | None] = []
    for tensor in spec.inputs:
        if tensor.param_type == "dynamic":
            raise entry.fail(f"{tensor.name} is a list of tensors, which cases cannot hold yet")
        value = given.fields.get(tensor.name, usual[tensor.name])
        if value is None and tensor.param_type != "optional":
            raise given.fail(f"{tensor.name} is required: it cannot be left out")
        result.append(None if value is None else given.shape(tensor.name, value))
    return tuple(result)


_Attrs = tuple[tuple[str, AttrValue], ...]


def _attrs(entry: Entry, spec: OpSpec) -> list[tuple[_Attrs, tuple[str, ...]]]:
    """Return every choice of attributes, each with what its name says of it.

    A list of values where the prototype's type takes one makes a choice of each; so does a list of
    lists for an attribute that is a list.
    """
    given = Entry.of(entry.path, f"{entry.where}.attrs", entry.fields.get("attrs") or {})
    given.only([attr.name for attr in spec.attrs])
    values: list[list[tuple[AttrValue, str]]] = []
    for attr in spec.attrs:
        if attr.name not in given.fields:
            values.append([(plain_attr(attr), "")])
            continue
        value = given.fields[attr.name]
        depth = attr.type.count("list_")
        if not _is_list_of(value, depth):
            values.append([(attr_value(given, attr.type, value), "")])
            continue
        each = [attr_value(given, attr.type, item) for item in value]  # type: ignore[attr-defined]
        values.append([(item, f"{attr.name}={_shown(item)}") for item in each])
    names = [attr.name for attr in spec.attrs]
    return [
        (
            tuple((name, value) for name, (value, _) in zip(names, row, strict=True)),
            tuple(told for _, told in row if told),
        )
        for row in product(*values)
    ]


def _is_list_of(value: object, depth: int) -> bool:
    """Whether a value is a list of values that are lists `depth` deep themselves."""
    if not isinstance(value, list) or not value:
        return False
    return depth == 0 or all(isinstance(item, list) and _is_deep(item, depth) for item in value)


def _is_deep(item: list[object], depth: int) -> bool:
    return depth == 1 or all(isinstance(each, list) for each in item)


def _shown(value: AttrValue) -> str:
    return str(value).replace(" ", "").lower() if isinstance(value, (bool, tuple)) else str(value)


def _sources(entry: Entry, spec: OpSpec) -> tuple[str, tuple[Source | None, ...]]:
    names = [tensor.name for tensor in spec.inputs]

    def each(key: str) -> dict[str, object]:
        value = entry.fields.get(key)
        if not isinstance(value, Mapping):
            return dict.fromkeys(names, value)
        Entry.of(entry.path, f"{entry.where}.{key}", value).only(names)
        return {name: value.get(name) for name in names}

    distributions, bounds, values = each("distribution"), each("range"), each("values")
    usual = entry.fields.get("distribution")
    usual = usual if isinstance(usual, str) else "normal"
    sources = tuple(
        entry.source(str(distributions[name] or "normal"), bounds[name], values[name])
        for name in names
    )
    plain = all(source == Source(usual) for source in sources)
    return usual, () if plain else sources


def save_case(path: Path, case: Case) -> None:
    """Add a case to a file of cases, which is made where there is none; its name must be new.

    Raises:
        UsageError: the file is not one of ours, or cannot be written.
    """
    document = read_document(path) if path.is_file() else {"cases": []}
    whole = Entry.of(path, "the file", document)
    whole.only(_WHOLE)
    listed = list(whole.fields.get("cases") or [])  # type: ignore[call-overload]
    listed = [item for item in listed if item.get("name") != case.name]
    listed.append(_case_fields(case))
    rest = {key: value for key, value in whole.fields.items() if key != "cases"}
    text = yaml.safe_dump(
        {**rest, "cases": listed}, sort_keys=False, default_flow_style=None, width=100
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as aside:
            aside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def _case_fields(case: Case) -> dict[str, object]:
    names = case.input_names or tuple(f"x{n}" for n in range(len(case.shapes)))
    fields: dict[str, object] = {
        "name": case.name,
        "op": case.kernel,
        "dtype": case.dtypes[0].name,
        "shape": list(case.shape),
        "shapes": {
            name: None if shape is None else list(shape)
            for name, shape in zip(names, case.shapes, strict=True)
            if shape != case.shape
        },
        "attrs": {
            name: list(value) if isinstance(value, tuple) else value for name, value in case.attrs
        },
        "seed": case.seed,
        "standard": case.standard,
    }
    if not case.sources:
        fields["distribution"] = case.distribution
    else:
        used = [source or Source(case.distribution) for source in case.sources]
        fields["distribution"] = {
            name: source.distribution
            for name, source in zip(names, used, strict=True)
            if source.values is None
        }
        fields["values"] = {
            name: [float(value) for value in source.values]
            for name, source in zip(names, used, strict=True)
            if source.values is not None
        }
    return {key: value for key, value in fields.items() if value not in ({}, "", None)}
