"""Prototypes made at random: a valid one gives a project, a wrong one an error of ours."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opkit.errors import SpecError, UsageError
from opkit.scaffold import render
from opkit.schema import dump, parse
from opkit.schema.names import is_reserved

SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).filter(lambda n: not is_reserved(n))
TYPES = st.sampled_from(["float16", "fp32", "bf16", "int8", "int32", "uint8", "int64", "bool"])
DEFAULTS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "string": st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
    "list_int": st.lists(st.integers(-9, 9), max_size=3),
    "list_float": st.lists(st.floats(-1, 1), max_size=3),
    "list_bool": st.lists(st.booleans(), max_size=3),
    "list_list_int": st.lists(st.lists(st.integers(-9, 9), max_size=2), max_size=2),
}


@st.composite
def prototypes(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid prototype without formulas."""
    count = draw(st.integers(1, 3))
    inputs, outputs = draw(st.integers(0, 3)), draw(st.integers(1, 2))
    attrs = draw(st.integers(0, 3))
    total = inputs + outputs + attrs
    names = draw(st.lists(NAMES, min_size=total, max_size=total, unique=True))

    def tensor(name: str, kinds: list[str]) -> dict[str, Any]:
        types = draw(st.lists(TYPES, min_size=count, max_size=count))
        return {"name": name, "type": types, "param_type": draw(st.sampled_from(kinds))}

    entries = [tensor(name, ["required", "optional", "dynamic"]) for name in names[:inputs]]
    has_list = any(entry["param_type"] == "dynamic" for entry in entries)
    kinds = ["required", "dynamic"] if has_list else ["required"]
    results = [tensor(name, kinds) for name in names[inputs : inputs + outputs]]

    def attribute(name: str) -> dict[str, Any]:
        kind = draw(st.sampled_from(sorted(DEFAULTS)))
        if draw(st.booleans()):
            return {"name": name, "type": kind}
        default = draw(DEFAULTS[kind])
        return {"name": name, "type": kind, "param_type": "optional", "default_value": default}

    return {
        "op": "Random" + draw(st.from_regex(r"[A-Z][a-z]{0,3}", fullmatch=True)),
        "input_desc": entries,
        "output_desc": results,
        "attr": [attribute(name) for name in names[inputs + outputs :]],
    }


@SETTINGS
@given(prototypes())
def test_a_valid_prototype_gives_a_project(prototype: dict[str, Any]) -> None:
    (spec,) = parse(json.dumps(prototype), file=Path("random.json"))
    for path, text in render(spec).items():
        if path.suffix == ".py":
            ast.parse(text, filename=str(path))
    (again,) = parse(dump(spec), file=Path("random.json"))
    assert again == spec


@SETTINGS
@given(prototypes(), st.data())
def test_a_changed_prototype_is_accepted_or_refused_by_name(
    prototype: dict[str, Any], data: st.DataObject
) -> None:
    """Whatever one of its values is replaced by, there is no traceback."""
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            places.append((value, key))
            if isinstance(item, (dict, list)):
                collect(item)

    collect(prototype)
    owner, key = data.draw(st.sampled_from(places))
    odd = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just([]))
    owner[key] = data.draw(odd)
    try:
        for spec in parse(json.dumps(prototype), file=Path("random.json")):
            render(spec)
    except (SpecError, UsageError) as error:
        assert str(error)


@SETTINGS
@given(st.text(max_size=40))
def test_no_formula_ends_in_a_traceback(text: str) -> None:
    tensor = {"type": "float32"}
    prototype = {
        "op": "Odd",
        "input_desc": [{"name": "x", **tensor}],
        "output_desc": [{"name": "y", **tensor, "formula": text}],
    }
    try:
        (spec,) = parse(json.dumps(prototype), file=Path("odd.json"))
        render(spec)
    except (SpecError, UsageError) as error:
        assert str(error)


@SETTINGS
@given(st.one_of(st.text(max_size=20), st.lists(st.one_of(st.integers(), st.text(max_size=8)))))
def test_no_shape_ends_in_a_traceback(shape: Any) -> None:
    prototype = {
        "op": "Odd",
        "input_desc": [{"name": "x", "type": "float32"}],
        "output_desc": [{"name": "y", "type": "float32", "shape": shape}],
    }
    try:
        (spec,) = parse(json.dumps(prototype), file=Path("odd.json"))
    except SpecError as error:
        assert error.pointer.startswith("/output_desc/0/shape")
    else:
        render(spec)
