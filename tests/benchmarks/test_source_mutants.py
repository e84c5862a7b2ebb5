"""What benchmarks/source_mutants.py changes: one place, in memory."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
TEXT = """
if TYPE_CHECKING:
    import os
def f(x: int | None) -> int:
    if x < 3 and x:
        return x + 1
    return 2
"""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("source_mutants")


def test_each_mutant_differs_from_the_text_in_one_place(bench: ModuleType) -> None:
    tree = ast.parse(TEXT)
    before = ast.unparse(tree)
    found = [ast.unparse(bench.changed(tree, n)) for n in range(len(list(bench.places(tree))))]
    assert ast.unparse(tree) == before
    assert len(set(found)) == len(found) == 7
    assert all("if TYPE_CHECKING" in text for text in found)
    lines = before.splitlines()
    for text in found:
        assert sum(a != b for a, b in zip(text.splitlines(), lines, strict=True)) == 1


def test_the_same_seed_draws_the_same_mutants_of_every_module(bench: ModuleType) -> None:
    count = len(bench.TESTS)
    drawn = bench.mutants(count, 7)
    assert drawn == bench.mutants(count, 7)
    assert len({next(e for e in bench.TESTS if m.file.startswith(e)) for m in drawn}) == count


def test_every_module_and_test_of_the_table_is_there(bench: ModuleType) -> None:
    paths = [*bench.TESTS, *(path for tests in bench.TESTS.values() for path in tests)]
    assert [path for path in paths if not (FOLDER.parent / path).exists()] == []
