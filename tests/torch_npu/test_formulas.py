"""The device's formulas are the compiler's operators."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import cast

import pytest

torch = pytest.importorskip("torch")

from opkit import kernels  # noqa: E402
from opkit.compiler import OPERATORS, Operator  # noqa: E402
from opkit.torch_npu.formulas import (  # noqa: E402
    FormulaRow,
    formula,
    formula_rows,
    formulas_text,
    special_formulas_text,
)

pytestmark = pytest.mark.torch
STEPS = {
    name.lower()
    for name in re.findall(
        r"^OP\((\w+),", (kernels.folder() / "vector_ops.inc").read_text(), re.MULTILINE
    )
}
WRITTEN = {"ln", "max", "min"}


def test_every_row_has_a_formula_of_steps() -> None:
    rows = list(formula_rows())
    assert len(formulas_text().splitlines()) == len(rows) > 130
    called = {name for row in rows for name in re.findall(r"(\w+)\(", formula(row))}
    called |= set(re.findall(r"(\w+)\(", special_formulas_text()))
    assert called - WRITTEN <= STEPS


def test_a_mend_of_the_compilers_operator_reaches_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = FormulaRow("mish.out", "promote")
    before = formula(row)
    mended = replace(OPERATORS["mish"], expand=lambda x: x.apply("tanh"))
    monkeypatch.setitem(cast(dict[str, Operator], OPERATORS), "mish", mended)
    assert formula(row) == "v0 = tanh(self); v0" != before


def test_numbers_come_with_each_call() -> None:
    assert formula(FormulaRow("add.out", "promote")) == "v1 = (other * alpha); v2 = (self + v1); v2"
    text = formula(FormulaRow("softplus.out", "promote"))
    assert "self * beta" in text
    assert "> threshold" in text
    fixed = FormulaRow("pow.Tensor_Scalar_out", "to_float", "exponent", "0.5")
    assert formula(fixed) == "v0 = sqrt(self); v0"


def test_an_operator_that_the_compiler_lacks_is_named() -> None:
    with pytest.raises(KeyError, match="i0"):
        formula(FormulaRow("i0.out", "promote"))
