"""The published schema agrees with the tables that the code uses."""

from __future__ import annotations

from typing import Any, cast

import jsonschema
import pytest

from opkit.dtypes import dtype_names
from opkit.schema import json_schema, snake_case


def definitions() -> dict[str, Any]:
    return cast("dict[str, Any]", json_schema()["$defs"])


def test_the_schema_is_valid_draft_2020_12() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_schema_lists_every_spelling_of_every_data_type() -> None:
    assert sorted(definitions()["data_type"]["enum"]) == sorted(dtype_names())


def test_an_output_has_the_fields_of_an_input_a_formula_and_a_shape() -> None:
    inputs, outputs = definitions()["input"]["properties"], definitions()["output"]["properties"]
    own = {name: field for name, field in outputs.items() if name not in ("formula", "shape")}
    # The shape of an input names its axes, that of an output says how it follows.
    assert own == {name: field for name, field in inputs.items() if name != "shape"}


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("AddCustom", "add_custom"),
        ("GELUCustom", "gelu_custom"),
        ("AbcAAc", "abc_a_ac"),
        ("Conv2DCustom", "conv2_d_custom"),
        ("GatherV2Custom", "gather_v2_custom"),
        ("HTTPServerCustom", "http_server_custom"),
        ("TopKCustom", "top_k_custom"),
        ("Add", "add"),
    ],
)
def test_names_follow_the_published_conversion_table(op: str, name: str) -> None:
    assert snake_case(op) == name
