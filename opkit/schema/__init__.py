"""The operator prototype: its JSON contract, its form as data, and the way between them."""

from __future__ import annotations

from opkit.schema.attributes import ATTR_SETTERS
from opkit.schema.axes import axis_names, multiple_of
from opkit.schema.dump import dump
from opkit.schema.familiar_rules import WRITTEN_OUT, written_out
from opkit.schema.gradients import gradient_gap
from opkit.schema.implied_axes import ELEMENTWISE, ROWS
from opkit.schema.load import load, parse, prototype_entries, prototype_text, with_line
from opkit.schema.names import (
    camel_case,
    free_name,
    is_reserved,
    kernel_symbol,
    nearest,
    operator_name,
    package_name,
    snake_case,
)
from opkit.schema.shape_rule import (
    ShapeOption,
    ShapeRule,
    counted_list,
    leading_axes,
    parse_shape_rule,
)
from opkit.schema.spec import LIST_LENGTH, AttrSpec, AttrValue, OpSpec, TensorSpec
from opkit.schema.validate import json_schema

__all__ = [
    "ATTR_SETTERS",
    "ELEMENTWISE",
    "LIST_LENGTH",
    "ROWS",
    "WRITTEN_OUT",
    "AttrSpec",
    "AttrValue",
    "OpSpec",
    "ShapeOption",
    "ShapeRule",
    "TensorSpec",
    "axis_names",
    "camel_case",
    "counted_list",
    "dump",
    "free_name",
    "gradient_gap",
    "is_reserved",
    "json_schema",
    "kernel_symbol",
    "leading_axes",
    "load",
    "multiple_of",
    "nearest",
    "operator_name",
    "package_name",
    "parse",
    "parse_shape_rule",
    "prototype_entries",
    "prototype_text",
    "snake_case",
    "with_line",
    "written_out",
]
