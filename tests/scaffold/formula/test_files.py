"""Generated files. The golden texts under golden/ are rewritten by

OPKIT_REWRITE_GOLDEN=1 python -m pytest tests/scaffold/formula/test_files.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

import pytest

from opkit.errors import SpecError, UsageError
from opkit.scaffold.kernel_files import kernel_files

GOLDEN = Path(__file__).parent / "golden"
GELU = "0.5*x*(1+tanh(sqrt(2/pi)*(x+0.044715*x**3)))"
RMSNORM = "x*rsqrt(mean(x**2, axis=-1)+epsilon)*gamma"


def example(make_spec, name):
    if name == "gelu_custom":
        return make_spec(GELU, op="GeluCustom")
    return make_spec(
        RMSNORM, op="Rmsnorm", inputs=("x", "gamma"), attrs=[("epsilon", "float", 1e-6)]
    )


@pytest.mark.parametrize("name", ["gelu_custom", "rmsnorm"])
def test_the_generated_files_are_the_reviewed_ones(make_spec, name):
    files = kernel_files(example(make_spec, name))
    for path, text in files.items():
        golden = GOLDEN / f"{path}.txt"
        if os.environ.get("OPKIT_REWRITE_GOLDEN"):
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8"), f"{path} changed: see this file's head"


def test_an_operator_has_a_kernel_a_tiling_header_and_a_host_file(make_spec):
    assert set(kernel_files(make_spec("x*2"))) == {
        PurePosixPath("op_kernel/test_op.cpp"),
        PurePosixPath("op_kernel/test_op_tiling.h"),
        PurePosixPath("op_host/test_op.cpp"),
        PurePosixPath("op_host/test_op_tuning.inc"),
    }


def test_generating_twice_gives_the_same_text(make_spec):
    spec = make_spec("exp(x)*b + tanh(x*b)", "max(x, b)", inputs=("x", "b"))
    assert kernel_files(spec) == kernel_files(spec)


def test_without_a_formula_compute_is_a_marked_gap(make_spec):
    files = kernel_files(make_spec(None, attrs=[("alpha", "float", 0.5)]))
    kernel = files[PurePosixPath("op_kernel/test_op.cpp")]
    assert kernel.count("NOT WRITTEN YET") == 1
    assert "alpha = tiling.alpha;" in kernel


def test_the_prototype_lists_every_variant_and_attribute(make_spec):
    spec = make_spec(
        "x*a + where(x > b, 1, c)",
        attrs=[("a", "float", 0.1), ("b", "int", -3), ("c", "bool", True)],
    )
    host = kernel_files(spec)[PurePosixPath("op_host/test_op.cpp")]
    assert "DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})" in host
    assert 'Attr("a").AttrType(OPTIONAL).Float(0.1f);' in host
    assert 'Attr("b").AttrType(OPTIONAL).Int(-3);' in host
    assert 'Attr("c").AttrType(OPTIONAL).Bool(true);' in host
    assert 'AddConfig("ascend910b")' in host


def test_names_that_the_generated_code_uses_itself_are_moved_aside(make_spec):
    files = kernel_files(make_spec("columns*tile + x", inputs=("x", "columns", "tile")))
    kernel = files[PurePosixPath("op_kernel/test_op.cpp")]
    assert "GM_ADDR columnsValue, GM_ADDR tileValue" in kernel
    assert "DTYPE_COLUMNS" in kernel


@pytest.mark.parametrize("formula", ["x/2", "exp(x)", "where(x > 0, x, 1)", "0.5*x", "abs(x)"])
def test_integers_refuse_what_the_vector_unit_lacks_for_them(make_spec, formula):
    with pytest.raises(SpecError, match="int32"):
        kernel_files(make_spec(formula, dtypes=("float16", "int32")))


def test_a_data_type_without_a_kernel_is_named(make_spec):
    with pytest.raises(SpecError, match="int8"):
        kernel_files(make_spec("x*2", dtypes=("int8",)))


def test_a_chip_that_lacks_data_copy_pad_is_refused(make_spec):
    with pytest.raises(UsageError, match="Ascend310P3"):
        kernel_files(make_spec("x*2"), compute_units=("ai_core-Ascend310P3",))


@pytest.mark.parametrize("name", ["gelu_custom", "rmsnorm"])
def test_no_template_mark_is_left_and_braces_balance(make_spec, name):
    for text in kernel_files(example(make_spec, name)).values():
        assert not re.search(r"\{%|%\}|\{\{[^}]*\}\}\s*$", text)
        assert text.count("{") == text.count("}")
        assert text.count("(") == text.count(")")


def test_inputs_share_a_queue(make_spec):
    # Seven queues of two buffers used to run out of the eight events between two pipes.
    names = tuple(f"x{number}" for number in range(7))
    files = kernel_files(make_spec(f"sum({' + '.join(names)}, axis=-1)", inputs=names))
    assert files[PurePosixPath("op_kernel/test_op.cpp")].count("TQue<QuePosition::VECIN") == 1
    names = tuple(f"x{number}" for number in range(9))
    with pytest.raises(SpecError, match="share 8 events"):
        kernel_files(make_spec(" + ".join(names), inputs=names))
