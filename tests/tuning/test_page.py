"""The landscape as a page: whole HTML in which nothing of the user's is markup."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from opkit.executor import HereExecutor
from opkit.tuning import Subject, TuningReport, landscape_page, tune

_VOID = ("meta", "circle", "polyline")
_HOSTILE = "<script>alert('x')</script>&amp;\""


@pytest.fixture
def report(make_subject: Callable[..., Subject], tmp_path: Path) -> TuningReport:
    def time_of(tiles: int, blocks: int) -> float:
        return 10.0 + (tiles - 2) ** 2 + abs(blocks - 1)

    subject = make_subject(time_of, values=4, wrong=lambda *c: c == (2, 1))
    return tune(subject, executor=HereExecutor(), state=tmp_path / "state.jsonl")


class _Reader(HTMLParser):
    """Collects tags and text, and sees that every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_shows_every_verified_candidate_and_every_pair(report: TuningReport) -> None:
    page = _Reader(landscape_page(report, made="made today"))
    assert page.tags.count("circle") == 15  # of 16, one is wrong
    assert {"scale on Ascend910B2", "made today", "tiles \\ blocks", "MTE2"} <= set(page.texts)
    assert page.texts.count("11.00") >= 2  # the best, beside the axis and in the landscape
    # The best time of all, five colours of the scale, and a cell for each candidate.
    assert page.tags.count("span") == 1 + 5 + 15
    # Round numbers beside the axis.
    assert {"12", "14"} <= set(page.texts)


def test_nothing_of_the_users_is_markup(report: TuningReport) -> None:
    hostile = dataclasses.replace(report, name=_HOSTILE)
    page = _Reader(landscape_page(hostile, made=_HOSTILE))
    assert page.tags.count("script") == _Reader(landscape_page(report)).tags.count("script")
    assert f"{_HOSTILE} on Ascend910B2" in page.texts
    assert _HOSTILE in page.texts
