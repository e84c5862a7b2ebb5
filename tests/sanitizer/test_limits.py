"""The table of what pages state, against the classes of findings and the tests that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.sanitizer import find_class
from opkit.sanitizer.limits import STATES, Limit, stated_limits

ROOT = Path(__file__).parents[2]
LIMITS = stated_limits()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.text[:40])
def test_a_limit_is_reported_as_it_says_and_held_by_a_test(limit: Limit) -> None:
    assert limit.state in STATES
    if limit.state == "left":
        assert limit.id == ""
        assert not limit.held_by.startswith("tests/")
        assert len(limit.held_by.split()) > 3, "no reason"
        return
    file, _, function = limit.held_by.partition("::")
    assert (ROOT / file).is_file()
    assert not function or f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")
    if limit.state == "checked":
        # A launch goes on: what reports it is a detector.
        assert not find_class(limit.id).fault
    elif limit.id:
        assert find_class(limit.id).fault


def test_a_limit_stands_once() -> None:
    keys = [(limit.api, limit.text) for limit in LIMITS]
    assert len(keys) == len(set(keys))


def test_every_class_of_note_is_of_some_limit_or_of_a_habit() -> None:
    named = {limit.id for limit in LIMITS}
    habits = {"NOTE-PACKED-BURSTS", "NOTE-PADDED-ROWS", "NOTE-SCALAR-SYNC"}
    from opkit.sanitizer import CLASSES

    assert {row.id for row in CLASSES if row.is_note} <= named | habits
