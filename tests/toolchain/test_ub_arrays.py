"""Declarations of arrays in UB as the toolchain writes them, and everything else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.toolchain.source.launch_rewrite import apply_edits
from opkit.toolchain.source.ub_arrays import ub_array_edits


def rewritten(text: str) -> str:
    return apply_edits(text, ub_array_edits(text), file=Path("k.cpp")).text.split("\n", 1)[1]


def test_an_array_becomes_a_place_and_a_reference_to_it() -> None:
    text = "void f() {\n  __ubuf__ float x[64];\n}"
    assert rewritten(text) == (
        "void f() {\n  ::opkit::UbArray< float [64]> opkit_ub_x; auto& x = *opkit_ub_x;\n}"
    )


def test_each_array_of_a_declaration_has_a_place_and_lines_keep_their_numbers() -> None:
    text = "void f() {\n  if (a) { __ubuf__ std::pair<int, int>\n x[N / sizeof(T)], y[2]; }\n}"
    assert rewritten(text) == (
        "void f() {\n  if (a) { ::opkit::UbArray< std::pair<int, int>\n"
        " [N / sizeof(T)]> opkit_ub_x; auto& x = *opkit_ub_x;"
        " ::opkit::UbArray< std::pair<int, int>  [2]> opkit_ub_y; auto& y = *opkit_ub_y; }\n}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "void f(__ubuf__ float* x) { __ubuf__ float* y = (__ubuf__ float*)0; x[0] = y[1]; }",
        "void f(__ubuf__ float x[4]);",
        "void f() { __ubuf__ float* table[4]; }",
        "void f() { // __ubuf__ float x[4];\n}",
        "struct S { __ubuf__ float x[4]; };",
        "void f() { g((__ubuf__ int*)p, a[4]); }",
    ],
)
def test_pointers_parameters_members_and_comments_stay_as_they_are(text: str) -> None:
    assert ub_array_edits(text) == ()
