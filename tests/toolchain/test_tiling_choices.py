"""Which kernels choose by their tiling data, as their text says it."""

from __future__ import annotations

import pytest

from opkit.toolchain import branches_by_tiling_data

CHOOSE = {
    "the struct": "if (i == tilingData.tiles - 1) {}",
    "a struct by macro": "GET_TILING_DATA_WITH_STRUCT(S, data, tiling); if (data.columns > 3) {}",
    "the plain macro": "GET_TILING_DATA(t, tiling); switch (t.mode) {}",
    "a member by macro": "GET_TILING_DATA_MEMBER(S, tail, last, tiling); if (last) {}",
    "a copy": "uint32_t tail = tilingData.tail; if (tail != 0) {}",
    "a member": "this->tail = tiling->tail; } void f() { if (this->tail) {} }",
    "a copy of a copy": "a_ = tiling.n; auto rest = a_ % 8; bool odd = rest != 0; if (odd) {}",
    "a parameter": """op.Init(x, y, tilingData.total, tilingData.tiles);
        void Init(GM_ADDR x, GM_ADDR y, uint32_t total, uint32_t n) { count = n; }
        void Process() { if (i == count - 1) {} }""",
    "a pointer": "void Init(const AddTiling* t) { tail_ = t->tail; } void f() { if (tail_) g(); }",
    "a question": "auto n = tiling.tail; auto m = n == 0 ? 1 : 2;",
    "an array": "n_[0] = tiling.tail; if (n_[0]) {}",
    "braces": "uint32_t n{tiling.tail}; if (n) {}",
}
DO_NOT = {
    "a loop": "for (i = 0; i < tiling.tiles; ++i) {}",
    "another condition": "auto n = tiling.tail; if (GetBlockIdx() == 0) {} DataCopy(a, b, n);",
    "a comment": "// if (tiling.n)\nint x;",
    "no tiling data": "int n = 3; if (n) {}",
    "another function": "f(a, tiling.n); void g(int c, int d) { if (d) {} } void f(int a, int k);",
}


# Only conditions that named the struct itself were seen: of a kernel that kept its tail's length
# in a member, no case had another tail, and it passed with the wrong one.
@pytest.mark.parametrize("text", CHOOSE.values(), ids=CHOOSE)
def test_a_choice_by_tiling_data_is_seen_through_copies(text: str) -> None:
    assert branches_by_tiling_data([text])


@pytest.mark.parametrize("text", DO_NOT.values(), ids=DO_NOT)
def test_other_choices_are_none(text: str) -> None:
    assert not branches_by_tiling_data([text])


def test_a_copy_in_another_file_counts() -> None:
    assert branches_by_tiling_data(["n = tilingData.n;", "if (n == 1) {}"])
