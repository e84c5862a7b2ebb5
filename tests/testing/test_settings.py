"""A project's own precision limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.dtypes import find_dtype
from opkit.errors import UsageError
from opkit.schema import OpSpec
from opkit.testing import Standard, operator_standards


def read(root: Path, spec: OpSpec, text: str, standard: str | None = None) -> Standard:
    (root / "pyproject.toml").write_text(text, encoding="utf-8")
    return operator_standards(root, [spec], standard=standard)[spec.name]


def number(standard: Standard, dtype: str, key: str) -> float:
    row = find_dtype(dtype)
    assert row is not None
    return standard.numbers_for(row)[key]


def test_without_a_table_it_is_the_conditioned_standard(tmp_path: Path, scale: OpSpec) -> None:
    assert operator_standards(tmp_path, [scale])["scale"].name == "conditioned"
    assert read(tmp_path, scale, "[tool.opkit]\n").name == "conditioned"


def test_an_operators_numbers_replace_the_standards(tmp_path: Path, scale: OpSpec) -> None:
    text = "[tool.opkit.precision.scale]\nfloat16 = { T = 0.25 }\n"
    own = read(tmp_path, scale, text)
    assert number(own, "float16", "T") == 0.25
    assert number(own, "float32", "T") == 2**-13
    # Numbers belong to their standard: another one that is asked for is as published.
    assert read(tmp_path, scale, text, "mixed").name == "mixed"
    assert number(read(tmp_path, scale, text, "ecosystem"), "float16", "T") == 0.25


def test_the_projects_standard_holds_for_all_and_the_operators_wins(
    tmp_path: Path, scale: OpSpec
) -> None:
    both = '[tool.opkit.precision]\nstandard = "mixed"\n'
    assert read(tmp_path, scale, both).name == "mixed"
    own = both + '[tool.opkit.precision.scale]\nstandard = "close"\n'
    assert read(tmp_path, scale, own).name == "close"


def test_float32_may_be_judged_as_the_format_that_it_was_computed_in(
    tmp_path: Path, scale: OpSpec
) -> None:
    own = read(tmp_path, scale, '[tool.opkit.precision]\nnumbers_of = "hifloat32"\n')
    assert number(own, "float32", "T") == 2**-11


def test_double_takes_the_level_of_the_operators_name(tmp_path: Path, scale: OpSpec) -> None:
    from dataclasses import replace

    levels = {"scale": "l0", "gelu_custom": "l2", "rmsnorm": "l2", "embedding_grad": "l1"}
    for name, level in levels.items():
        spec = replace(scale, name=name)
        assert read(tmp_path, spec, "", "double").name == f"double_{level}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.opkit.precision.scael]\n", 'did you mean "scale"?'),
        ("[tool.opkit.precision]\nstandard = 'mixd'\n", 'did you mean "mixed"?'),
        ("[tool.opkit.precision.scale]\nfloat16 = { S = 1 }\n", 'has no number "S"'),
        ("[tool.opkit.precision.scale]\nfloat16 = 3\n", "expected a table of numbers"),
        ("[tool.opkit.precision.scale]\nfloat16 = { T = 'x' }\n", "expected a number"),
        ("[tool.opkit.precision]\nnumbers_of = 'x'\n", "one of float16"),
    ],
)
def test_a_wrong_setting_says_what_is_right(
    tmp_path: Path, scale: OpSpec, text: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, scale, text)
    assert says in str(caught.value)
