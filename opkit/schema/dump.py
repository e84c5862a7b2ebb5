"""Write `OpSpec`s back as a prototype JSON, the form that `load` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from opkit.schema.json_text import Json
from opkit.schema.names import snake_case
from opkit.schema.spec import AttrSpec, AttrValue, OpSpec, TensorSpec

__all__ = ["dump"]


def dump(specs: OpSpec | Sequence[OpSpec]) -> str:
    """Return the prototype text of one operator (an object) or of several (a list)."""
    if isinstance(specs, OpSpec):
        return _text(_operator(specs))
    return _text([_operator(spec) for spec in specs])


def _text(value: Json) -> str:
    return json.dumps(value, indent=4, ensure_ascii=False) + "\n"


def _operator(spec: OpSpec) -> dict[str, Json]:
    entry: dict[str, Json] = {
        "op": spec.op,
        "input_desc": [_tensor(tensor) for tensor in spec.inputs],
        "output_desc": [_tensor(tensor) for tensor in spec.outputs],
        "attr": [_attribute(attr) for attr in spec.attrs],
    }
    if spec.name != snake_case(spec.op):
        entry["kernel_name"] = spec.name
    if spec.gradient is not None:
        entry["gradient"] = spec.gradient
    if spec.fast_math:
        entry["fast_math"] = True
    return entry


def _tensor(tensor: TensorSpec) -> dict[str, Json]:
    entry: dict[str, Json] = {
        "name": tensor.name,
        "param_type": tensor.param_type,
        "type": [row.name for row in tensor.dtypes],
        "format": list(tensor.formats),
    }
    if tensor.formula is not None:
        entry["formula"] = tensor.formula
    if tensor.axes is not None:
        entry["shape"] = list(tensor.axes)
    if tensor.shape is not None:
        rule = tensor.shape.text
        entry["shape"] = rule if isinstance(rule, str) else list(rule)
    return entry


def _attribute(attr: AttrSpec) -> dict[str, Json]:
    entry: dict[str, Json] = {
        "name": attr.name,
        "param_type": "required" if attr.required else "optional",
        "type": attr.type,
    }
    if attr.default is not None:
        entry["default_value"] = _default(attr.default)
    return entry


def _default(value: AttrValue) -> Json:
    if not isinstance(value, tuple):
        return value
    return [list(item) if isinstance(item, tuple) else item for item in value]
