"""What benchmarks/judges.py counts: right things refused, wrong ones passed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def beside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_a_judge_is_wrong_where_it_refuses_what_is_right_or_passes_what_is_wrong() -> None:
    judges = module("judges")
    found = [
        judges.Judgement("verify", "a", "right", "", 1.0),
        judges.Judgement("verify", "b", "right", "differs", 2.0),
        judges.Judgement("verify", "c", "wrong", "", 3.0),
        judges.Judgement("verify", "d", "wrong", "differs", 4.0),
        judges.Judgement("verify", "e", "unclear", "differs", 5.0),
        judges.Judgement("opkit test", "a", "wrong", "", 1.0),
        judges.Judgement("opkit test", "a", "wrong", "fault", 1.0),
    ]
    counts = judges.count(found)
    verify = counts["verify"]
    assert (verify.right, verify.wrong, verify.unclear, verify.median_seconds) == (2, 2, 1, 3.0)
    assert [each.name for each in verify.false_alarms] == ["b"]
    assert [each.name for each in verify.false_passes] == ["c"]
    # The last judgement of a name is the one that counts.
    assert counts["opkit test"].wrong == 1 and not counts["opkit test"].false_passes
    text = judges.summary(found)
    assert "| verify | 2 | 1 | 2 | 1 | 1 | 3.00 s |" in text
    assert "verify refuses b: differs" in text and "verify passes c" in text


@pytest.mark.parametrize(
    ("rule", "found", "truth"),
    [
        ("chip", {"off": 0.0}, "wrong"),
        ("right", {"off": 9.0}, "right"),
        ("value", {"off": 0.0}, "right"),
        ("value", {"off": 0.5}, "unclear"),
        ("value", {"off": 1.5}, "wrong"),
        ("value", {"verdict": "lost"}, "wrong"),
        ("value", {"faulted": "out of bounds"}, "wrong"),
        ("value", {"off": 0.0, "why": "INIT-READ Adds reads"}, "wrong"),
    ],
)
def test_a_changed_kernel_is_right_by_its_rule_and_its_bits(
    rule: str, found: dict[str, object], truth: str
) -> None:
    assert module("judges_kernels").truth_of(rule, found) == truth


def test_a_kernel_is_changed_once_in_each_mutant() -> None:
    text = "void Process()\n    {\n        Sub(z, x, y, count);\n        Muls(z, z, 2.5f, count);\n"
    mutants = list(module("judges_mutants").changes_of(text, 0, 40))
    assert len({mutant.text for mutant in mutants}) == len(mutants) > 8
    assert text not in {mutant.text for mutant in mutants}
    swapped = next(m.text for m in mutants if m.change.name == "operands swapped")
    assert swapped == text.replace("Sub(z, x, y, count)", "Sub(z, y, x, count)")


def test_numpy_gives_what_roundings_may_move() -> None:
    numpy_judge = module("judges_numpy")
    from opkit import compiler as oc

    builder = oc.GraphBuilder("moved")
    x = builder.input("x", (4,))
    builder.output("y", (x + 1.0) - 1.0)
    graph = builder.graph()
    arrays = [np.array([1e-3, 1.0, 2.0, -3.0], np.float32)]
    right = numpy_judge.evaluate(graph, arrays)
    moves = numpy_judge.spread(graph, arrays, right)
    single = ((arrays[0] + np.float32(1)) - np.float32(1)).astype(np.float64)
    assert numpy_judge.right_by_spread(single, right["y"], moves["y"], "float32")[0]
    wrong = single + 1e-4
    assert not numpy_judge.right_by_spread(wrong, right["y"], moves["y"], "float32")[0]
