"""Knobs and the candidates that they make."""

from __future__ import annotations

import pytest

from opkit.errors import UsageError
from opkit.tuning import Knob, Space

SPACE = Space((Knob("tiles", (0, 1, 2, 4), 0), Knob("schedule", ("", "rows"), "")))


def test_other_values_replace_a_knobs_own_and_keep_the_start() -> None:
    narrow = SPACE.narrowed(["tiles=8, 16"])
    assert narrow.knobs[0].values == (0, 8, 16)
    assert narrow.size == 6
    assert narrow.start == (0, "")
    assert SPACE.narrowed(["schedule=parts"]).knobs[1].values == ("", "parts")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tile=1", 'no knob "tile"'),
        ("tiles", "gives no values"),
        ("tiles=", "no whole number"),
        ("tiles=1,x", '"x" is no whole number'),
        ("tiles=-1", "no whole number"),
    ],
)
def test_a_wrong_knob_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SPACE.narrowed([text])


def test_neighbours_differ_in_one_knob() -> None:
    for other in SPACE.neighbours((1, "")):
        assert sum(a != b for a, b in zip(other, (1, ""), strict=True)) == 1


def test_a_candidate_and_its_places_are_the_same_thing() -> None:
    for candidate in SPACE.candidates():
        assert SPACE.at(SPACE.indices(candidate)) == candidate
