"""Edits and newly generated text, merged."""

from __future__ import annotations

from opkit.scaffold.merge import merge_texts

BASE = "".join(f"line {number}\n" for number in range(10))


def changed(number: int, text: str, base: str = BASE) -> str:
    return base.replace(f"line {number}\n", text)


def test_changes_of_different_lines_are_both_made() -> None:
    mine, new = changed(2, "mine\n"), changed(7, "new\nnewer\n")
    assert merge_texts(BASE, mine, new) == changed(7, "new\nnewer\n", mine)
    assert merge_texts(BASE, changed(9, ""), changed(0, "")) == BASE[7:-7]


def test_the_same_change_is_made_once() -> None:
    both = changed(4, "same\n")
    assert merge_texts(BASE, both, both) == both


def test_changes_of_one_line_or_its_neighbour_are_no_merge() -> None:
    assert merge_texts(BASE, changed(4, "mine\n"), changed(4, "new\n")) is None
    assert merge_texts(BASE, changed(4, "mine\n"), changed(5, "new\n")) is None
    assert merge_texts(BASE, changed(4, ""), changed(4, "line 4\nnew\n")) is None


def test_what_one_side_left_alone_is_the_others() -> None:
    assert merge_texts(BASE, BASE, "other\n") == "other\n"
    assert merge_texts(BASE, "other", BASE) == "other"
