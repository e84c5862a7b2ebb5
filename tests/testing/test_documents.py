"""How many axes an operator's documents allow, and cases that keep to that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opkit.testing import find_by_name, library_cases
from opkit.testing.cases.documents import (
    documented_ranks,
    documented_rounding,
    documented_values,
)
from opkit.testing.cases.expressions import evaluate_expression
from opkit.testing.cases.values import Source
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


@pytest.mark.torch
def test_what_is_refused_gets_other_shapes_that_the_reference_takes() -> None:
    # Of an outer product and what is added to it only vectors were tried, which broadcast.
    spec = operator("GerV2", "x y A", attrs="alpha:float")
    found = find_by_name(spec)
    assert found is not None
    rounds = other_library_cases(spec, found.expression, 0, found=found)
    assert ((31,), (31,), (31, 31)) in [case.shapes for cases in rounds for case in cases]


@pytest.mark.torch
def test_cases_have_as_many_axes_as_their_operator_takes() -> None:
    # Sums of matrices were run on vectors, and read axes that these have not.
    spec = operator("ReduceSumV2", "x", attrs="axes:int keepdims:int")
    call = "torch.sum(x, axes, bool(keepdims))"
    shapes = [case.shape for case in library_cases(spec, call, ranks=(2, 2))]
    assert shapes == [(1, 1), (1, 31), (7, 33), (15, 65), (102, 19), (97, 1031)]
    assert {len(case.shape) for case in library_cases(spec, call, ranks=(3, 8))} == {3, 4}


_VALUES = """
| 参数 | 输入/输出 | 描述 | 类型 |
| a | 输入 | 梯度。 | FLOAT |
| {} | 输入 | {} | UINT8 |
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "sentence", "source"),
    [
        # Bits that a kernel multiplies by were judged as any number of eight bits.
        ("mask", "掩码（取值 {0, 1}），固定为 uint8。", Source("either", 0.0, 1.0)),
        ("mask", "是UINT8时，值只能是0或1。", Source("either", 0.0, 1.0)),
        ("mask", "标签，元素应为 `1` 或 `-1`。", Source("either", -1.0, 1.0)),
        ("mask", "值域期望落在 [-1, 1]。", Source("uniform", -1.0, 1.0)),
        ("mask", "有效取值范围(0.0, 1.0)，不做clamp", Source("uniform", 0.0, 1.0)),
        ("mask", "方差，元素应非负。", Source("uniform", 1.0, 9.0)),
        # Functions have other names for their inputs: these are told apart by their order.
        ("self", "掩码（取值 {0, 1}）", Source("either", 0.0, 1.0)),
        # Of shapes, of what may not be known here, and of the number of elements.
        ("mask", "维度数取值范围为[1, 7]。", None),
        ("mask", "元素的取值范围是[0, C - 1]。", None),
        ("mask", "元素数需大于 0。", None),
        ("mask", "元素个数为1。", None),
        ("mask", "维度必须大于0且必须是偶数", None),
    ],
)
def test_values_are_those_that_a_document_says_of_an_input(
    tmp_path: Path, name: str, sentence: str, source: Source | None
) -> None:
    page = tmp_path / "README.md"
    text = _VALUES if name != "self" else _VALUES.replace("| a |", "| gradOutput |")
    page.write_text(text.format(name, sentence), encoding="utf-8")
    spec = operator("MaskGrad", "a mask:uint8", "y")
    found = documented_values(tmp_path, spec.inputs)
    assert found == ({} if source is None else {"mask": source})
    cases = library_cases(spec, "torch.mul(a, mask)", values=found)
    assert {case.sources for case in cases} == {() if source is None else (None, source)}


def test_rows_in_order_have_the_types_of_the_inputs(tmp_path: Path) -> None:
    text = _VALUES.replace("| a |", "| gradOutput |").format("self", "取值 {0, 1}")
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    spec = operator("MaskGrad", "a mask:int64", "y")
    assert documented_values(tmp_path, spec.inputs) == {}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("按照指定的小数位，四舍五入。", [-3.0, -2.0, -1.0, 1.0, 3.0, 2.0]),
        ("若该值与两个整数距离一样则向偶数取整；四舍五入到指定的位数。", [-2, -2, -0.0, 0, 2, 2]),
        ("四舍六入五成双", [-2, -2, -0.0, 0, 2, 2]),
        ("x", [-2, -2, -0.0, 0, 2, 2]),
    ],
)
def test_halves_go_where_the_overview_says(tmp_path: Path, text: str, rounded: list[float]) -> None:
    # They went to even numbers, as torch's do, also where a document says that 0.5 becomes 1.
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    spec = operator("Round", "x", "y", "decimals:int=0")
    found = find_by_name(spec)
    assert found is not None
    expression = documented_rounding(tmp_path, found.expression)
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 2.5, 1.75])
    (y,) = evaluate_expression(expression, spec, [halves], attrs={"decimals": 0})
    np.testing.assert_array_equal(y, rounded)
    (y,) = evaluate_expression(expression, spec, [halves / 10], attrs={"decimals": 1})
    np.testing.assert_allclose(y, np.array(rounded) / 10)
