"""The text of a piece of a formula is what Python's own function gives."""

from __future__ import annotations

import ast

import pytest

from opkit.scaffold.formula.excerpt import text_of


@pytest.mark.parametrize(
    "source", ["1.50*x + max(x, axis=-1)", "é + 0.1*(x\n  + 2e3)", "x\r\n", "(x +\r y)", "(\n x\f)"]
)
def test_every_piece_is_the_one_that_python_gives(source: str) -> None:
    pieces = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr)]
    assert pieces
    for node in pieces:
        assert text_of(source, node) == ast.get_source_segment(source, node)
