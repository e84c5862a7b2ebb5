"""How many axes an operator's documents allow, and cases that keep to that."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.testing import find_by_name, library_cases
from opkit.testing.documents import documented_ranks
from opkit.testing.opdef_cases import other_library_cases
from tests.testing.test_by_name import operator

_TABLE = """
<table><tr><th>参数名</th><th>输入/输出</th><th>描述</th><th>维度(shape)</th></tr>
<tr><td>axis（int64_t）</td><td>属性</td><td>支持1-2维。</td><td>-</td></tr>
<tr><td>self（aclTensor*）</td><td>输入</td><td>x</td><td>{}</td></tr></table>
"""


@pytest.mark.parametrize(
    ("file", "text", "ranks"),
    [
        ("README.md", "目前支持float32，仅支持2维，axis仅支持1根轴", (2, 2)),
        ("README.md", "| x | 输入 | 仅支持三维的Tensor传入 |", (3, 3)),
        ("README.md", "| x | 输入 | a |\n| y | 输出 | 维度为4维，shape和x的一致 |", (4, 4)),
        ("README.md", "| x | 输入 | a |\n| y | 输出 | 维度为4维 |", None),
        ("docs/aclnnSum.md", _TABLE.format("2-8"), (2, 8)),
        ("docs/aclnnSum.md", _TABLE.format("3"), (3, 3)),
        ("docs/aclnnSum.md", _TABLE.format("0-8"), None),
        ("docs/aclnnSum.md", _TABLE.format("(batch_size, seq_len, D)"), (3, 3)),
        ("docs/aclnnSum.md", _TABLE.format("(N, C, H, W)或（N，C，D，H，W）"), (4, 5)),
        ("docs/aclnnSum.md", _TABLE.format("(N,)"), (1, 1)),
        ("docs/aclnnSum.md", _TABLE.format("[0,8]"), None),
        ("docs/aclnnSum.md", _TABLE.format("(B..., H)"), None),
        ("docs/aclnnSum.md", _TABLE.format("-"), None),
        ("README.md", "| x | 输入 | shape支持5维且与y一致 |", (5, 5)),
        # Rows of several axes were run on kernels that take their host code's first two.
        ("README.md", "| x | 输入 | 前向输入，形状为 [N, D]。 |", (2, 2)),
        ("README.md", "| x | 输入 | 输入张量，shape为(N,C)或者(C,)。 |", (1, 2)),
        ("README.md", "| x | 输入 | shape为[A1, ...,Ai] |", None),
        ("README.md", "| x | 输入 | shape为(N, C)或4维 |", None),
        ("README.md", "仅支持2维或3维", (2, 3)),
        ("README.md", "（支持四维或五维）", (4, 5)),
        ("README.md", "支持2维", None),
        ("README.md", "仅支持2维。仅支持3维", None),
    ],
)
def test_documents_say_how_many_axes_there_are(
    tmp_path: Path, file: str, text: str, ranks: tuple[int, int] | None
) -> None:
    page = tmp_path / file
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")
    assert documented_ranks(tmp_path, ["x"]) == ranks


def test_pages_of_several_functions_allow_what_one_of_them_does(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, ranks in (("one", "2-3"), ("two", "3-4")):
        (tmp_path / "docs" / f"{name}.md").write_text(_TABLE.format(ranks), encoding="utf-8")
    assert documented_ranks(tmp_path, ["x"]) == (2, 4)
    (tmp_path / "README.md").write_text("仅支持3维", encoding="utf-8")
    assert documented_ranks(tmp_path, ["x"]) == (3, 3)


def test_what_is_refused_gets_other_shapes_that_the_reference_takes() -> None:
    # Of an outer product and what is added to it only vectors were tried, which broadcast.
    spec = operator("GerV2", "x y A", attrs="alpha:float")
    found = find_by_name(spec)
    assert found is not None
    rounds = other_library_cases(spec, found.expression, 0, found=found)
    assert ((31,), (31,), (31, 31)) in [case.shapes for cases in rounds for case in cases]


def test_cases_have_as_many_axes_as_their_operator_takes() -> None:
    # Sums of matrices were run on vectors, and read axes that these have not.
    spec = operator("ReduceSumV2", "x", attrs="axes:int keepdims:int")
    call = "torch.sum(x, axes, bool(keepdims))"
    shapes = [case.shape for case in library_cases(spec, call, ranks=(2, 2))]
    assert shapes == [(1, 1), (1, 31), (7, 33), (15, 65), (102, 19), (97, 1031)]
    assert {len(case.shape) for case in library_cases(spec, call, ranks=(3, 8))} == {3, 4}
