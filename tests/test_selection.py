from __future__ import annotations

from types import SimpleNamespace

import pytest

from opkit.errors import UsageError
from opkit.selection import select_by_name

NAMES = ("gelu-float16-17", "gelu-float32-17", "Gelu-bfloat16-edge")


def selected(expression: str) -> list[str]:
    items = [SimpleNamespace(name=name) for name in NAMES]
    return [item.name for item in select_by_name(items, expression)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("gelu", list(NAMES)),
        ("float16 and not edge", ["gelu-float16-17"]),
        ("EDGE or float32", ["gelu-float32-17", "Gelu-bfloat16-edge"]),
        ("not (float16 or float32)", []),
        ("not not edge", ["Gelu-bfloat16-edge"]),
        ("17 and (float32)", ["gelu-float32-17"]),
    ],
)
def test_an_expression_chooses_by_parts_of_names(expression: str, expected: list[str]) -> None:
    assert selected(expression) == expected


@pytest.mark.parametrize("expression", ["", "and", "a or", "(a", "a)", "not", "a b", "()"])
def test_an_expression_that_cannot_be_read_is_refused_without_any_item(expression: str) -> None:
    # Samples were chosen by a second reader, which read nothing where there was no sample.
    with pytest.raises(UsageError, match="cannot be read"):
        select_by_name([], expression)
