"""Formulas over inputs of one shape through the compiler: which input is one row of it, a launch
tells."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import runtime
from opkit.sanitizer import Check
from opkit.scaffold import render
from opkit.scaffold.formula import golden_source
from opkit.scaffold.program import program_files
from opkit.schema import OpSpec, parse

GELU = "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))"
CENTRED = "(x - mean(x, axis=-1))"
SOFTMAX = "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)"
NORM = f"{CENTRED}*rsqrt(mean({CENTRED}**2, axis=-1) + 1e-5)*gamma + beta"


def prototype(op: str, outputs: Mapping[str, str], *inputs: str, types: str = "float32") -> OpSpec:
    entry: dict[str, Any] = {
        "op": op,
        "input_desc": [{"name": name, "type": types.split()} for name in inputs],
        "output_desc": [
            {"name": name, "type": types.split(), "formula": text} for name, text in outputs.items()
        ],
        "gradient": False,
    }
    return parse(json.dumps(entry), file=Path("rows.json"))[0]


def text_of(spec: OpSpec, folder: str) -> str:
    units = ("ai_core-Ascend910B2",)
    (text,) = [
        text
        for path, text in program_files(spec, compute_units=units).items()
        if str(path.parent) == folder and path.suffix == ".cpp"
    ]
    return text


def test_constants_keep_their_names_beside_the_instructions() -> None:
    kernel = text_of(prototype("Gelu", {"y": GELU}, "x", types="float16"), "op_kernel")
    assert "// x*sigmoid(2*sqrt(2/pi)*(x + 0.044715*x**3))" in kernel


def test_inputs_of_one_launch_are_whole_or_one_row() -> None:
    host = text_of(prototype("Plus", {"y": "x + w"}, "x", "w"), "op_host")
    assert "const int64_t wStep = wIsWhole ? columnsExtent : 0;" in host
    assert "tiling->wSize = columnsExtent + wStep * ((-1) + rowsExtent);" in host
    assert "const Tuned tuned = FindTuned(context, rowsExtent, columnsExtent);" in host
    kernel = text_of(prototype("Plus", {"y": "x + w"}, "x", "w"), "op_kernel")
    assert "wGlobal[row * tiling.wStep + column]" in kernel


def test_one_row_of_a_norm_is_copied_once_into_each_buffer() -> None:
    kernel = text_of(prototype("Norm", {"y": NORM}, "x", "gamma", "beta"), "op_kernel")
    assert kernel.count("LoadRows(") == 3
    assert "nextRow < firstRow + BUFFERS * tiling.rowsPerTile" in kernel


def test_a_size_of_tiles_that_was_tuned_reaches_each_launch() -> None:
    host = text_of(prototype("Norm", {"y": NORM}, "x", "gamma", "beta"), "op_host")
    assert "#define TUNED(CHIP, TYPE, ROWS, COLUMNS, TILES, BLOCKS, PARTS)" in host
    assert "limit, tiles, parts, tiling);" in host
    assert "DivideUp(DivideUp(columnsExtent, rowParts), 64) * 64" in host


def test_an_attribute_that_a_gradient_has_no_use_for_is_read_all_the_same() -> None:
    entry = {
        "op": "Shift",
        "input_desc": [{"name": "x", "type": "float32"}],
        "output_desc": [{"name": "y", "type": "float32", "formula": "exp(x) + a"}],
        "attr": [{"name": "a", "type": "float", "default_value": 1.5}],
    }
    tree = render(parse(json.dumps(entry), file=Path("rows.json")), name="rows", framework="aclnn")
    (host,) = [
        text for path, text in tree.items() if path.name == "shift_grad.cpp" and "host" in str(path)
    ]
    assert "const float aValue = *aValuePointer;" in host and "static_cast<double>(aValue)" in host


@pytest.mark.parametrize("formula", ["x", "x + w", "w"])
def test_an_output_has_its_own_type_also_where_it_is_an_input(formula: str) -> None:
    kernel = text_of(prototype("Same", {"y": formula}, "x", "w", types="float16"), "op_kernel")
    assert "GlobalTensor<half> yGlobal;" in kernel
    wide = {
        "op": "Wide",
        "input_desc": [{"name": name, "type": "float16"} for name in ("x", "w")],
        "output_desc": [{"name": "y", "type": "float32", "formula": formula}],
    }
    (spec,) = parse(json.dumps(wide), file=Path("rows.json"))
    assert "GlobalTensor<float> yGlobal;" in text_of(spec, "op_kernel")


def test_combinations_of_types_share_a_class_where_they_differ_in_nothing_else() -> None:
    types = "float16 float32 bfloat16 int32 int16"
    kernel = text_of(prototype("Plus", {"y": "x + w"}, "x", "w", types=types), "op_kernel")
    assert kernel.count("class Kernel") == 1 and "#if" not in kernel
    assert "KernelPlus<DTYPE_X> op;" in kernel
    # Fractions are doubled last, where that loses no digits; whole numbers as it is written.
    kernel = text_of(prototype("Twice", {"y": "2*x*w"}, "x", "w", types=types), "op_kernel")
    assert kernel.count("class Kernel") == 2
    assert "#elif (ORIG_DTYPE_X == DT_INT32 &&" in kernel


def test_what_tiles_take_follows_from_the_bytes_of_a_type() -> None:
    host = text_of(prototype("Plus", {"y": "x + w"}, "x", "w", types="float16 float32"), "op_host")
    assert "GetSizeByDataType(context->GetInputDesc(0)->GetDataType());" in host
    assert "(6 * xBytes + 8) / 256 * 256;" in host
    host = text_of(prototype("Plus", {"y": "x + w"}, "x", "w", types="float16 bfloat16"), "op_host")
    assert "xBytes" not in host


def test_types_that_do_not_change_together_have_parameters_of_their_own() -> None:
    entry = {
        "op": "Mixed",
        "input_desc": [
            {"name": "x", "type": ["float16", "float16", "float32"]},
            {"name": "w", "type": ["float16", "float32", "float32"]},
        ],
        "output_desc": [{"name": "y", "type": ["float32"] * 3, "formula": "x*w"}],
        "gradient": False,
    }
    kernel = text_of(parse(json.dumps(entry), file=Path("rows.json"))[0], "op_kernel")
    assert "template <typename XType, typename WType>" in kernel
    assert "KernelMixed<DTYPE_X, DTYPE_W> op;" in kernel
    assert "GlobalTensor<float> yGlobal;" in kernel
    assert "(sizeof(XType) + sizeof(WType)) * tiling.tileLength" in kernel


def test_an_output_that_is_one_number_is_written_to_all_elements() -> None:
    kernel = text_of(prototype("Fill", {"y": "2*pi"}, "x"), "op_kernel")
    assert "Duplicate(yLocal, 6.2831855f, count);" in kernel


SPECS = (
    prototype("Lerp", {"y": "x + w*(z - x)"}, "x", "z", "w", types="float32 float16"),
    prototype("Leaky", {"y": "where(x > w, x, 0.1*x)"}, "x", "w", types="float16 float32"),
    prototype("Times", {"y": "2*x*w"}, "x", "w", types="float16 float32 int32 int16"),
    prototype("Norm", {"y": NORM}, "x", "gamma", "beta", types="float32 float16"),
    prototype(
        "Soft", {"y": "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)"}, "x"
    ),
    prototype(
        "Both",
        {"z": "x + w", "y": "(x + w)*rsqrt(mean((x + w)**2, axis=-1))", "m": "max(x + w, axis=-1)"},
        *("x", "w"),
        types="float16 float32",
    ),
    prototype("Scale", {"y": "(x - row(m))*g", "t": "max(x*g, axis=-1)"}, "x", "m", "g"),
    prototype("Number", {"y": "2*pi", "z": "x*w"}, "x", "w", types="float32 float16"),
    prototype("Fill", {"y": "like(sum(x*g, axis=-1)/columns, x)"}, "x", "g"),
    prototype("Same", {"y": "x", "z": "w", "s": "x + w"}, "x", "w", types="float16"),
    prototype("Whole", {"y": "max(3*x - w, 7)"}, "x", "w", types="int32 int16"),
)
# One row, one column, rows shorter and longer than a repeat, than a tile, than the buffer.
SHAPES = [(1, 100), (100, 1), (37, 33), (5000, 40), (90, 1000), (3, 60000)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The operators, built."""
    from opkit.toolchain import build, load_project

    root = tmp_path_factory.mktemp("rows")
    tree = render(SPECS, name="rows", framework="aclnn")
    for path, text in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return runtime.open(build(load_project(root)).folder)


def shapes_of(spec: OpSpec, shape: tuple[int, int]) -> list[tuple[tuple[int, ...], ...]]:
    """Return every way in which inputs are of a shape, or one row of it."""
    is_by_row = spec.op in ("Norm", "Scale", "Fill", "Both")

    def choices(name: str) -> tuple[tuple[int, ...], ...]:
        if name == "m":
            return (shape[:1],)
        # By row, the first input says how many rows there are.
        if name == "x" and is_by_row:
            return (shape,)
        return (shape, shape[1:])

    return list(itertools.product(*(choices(tensor.name) for tensor in spec.inputs)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_input_may_be_one_row(library: Any, spec: OpSpec, shape: tuple[int, int]) -> None:
    module: dict[str, Any] = {}
    exec(golden_source(spec) or "", module)
    rng = np.random.default_rng(0)
    runtime.configure(poison=True)
    for variant, given in itertools.product(range(spec.variant_count), shapes_of(spec, shape)):
        dtype = spec.inputs[0].dtypes[variant].name
        arrays = [(rng.uniform(0.5, 2.0, each) * 9).astype(dtype) for each in given]
        if np.prod(shape) < 5000:
            with Check() as check:
                outputs = library.run(spec.op, arrays, {})
            assert not check.findings
        else:
            outputs = library.run(spec.op, arrays, {})
        wide = np.int64 if "int" in dtype else np.float64
        expected = module[spec.name](*(array.astype(wide) for array in arrays))
        expected = expected if isinstance(expected, tuple) else (expected,)
        tolerance = {"float16": 8e-3, "float32": 1e-4}.get(dtype, 0)
        for actual, wanted in zip(outputs, expected, strict=True):
            wanted = np.broadcast_to(wanted, actual.shape)
            np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def test_one_class_takes_whole_rows_and_parts_of_longer_ones() -> None:
    kernel = text_of(prototype("Soft", {"y": SOFTMAX}, "x", types="float16 float32"), "op_kernel")
    assert kernel.count("class Kernel") == 1
    stages = [kernel.split(f"void Compute{at}(")[1].split("\n    }\n")[0] for at in range(3)]
    # A row in parts computes again what whole rows still have.
    assert "if (InParts())" not in stages[0]
    assert [stage.count("Exp(") for stage in stages] == [0, 1, 1]
    assert "Exp(" in stages[2].split("if (InParts()) {")[1].split("}")[0]


def test_what_parts_of_a_row_read_again_keeps_its_place() -> None:
    # The maximum used to share its slot with the sum that parts add up.
    kernel = text_of(prototype("Soft", {"y": SOFTMAX}, "x"), "op_kernel")
    (peak,) = re.findall(r"FoldRows<Fold::Max>\(([^,]+),", kernel)
    (total,) = re.findall(r"FoldRows<Fold::Sum>\(([^,]+),", kernel)
    (inverse, ones) = re.findall(r"Div\((\w+), ([^,]+),", kernel)[0]
    assert len({peak, total, inverse, ones}) == 4
    assert set(re.findall(r"EachRow<Each::Sub>\(\w+, \w+, ([^,]+), rows\)", kernel)) == {peak}


def test_an_output_that_an_earlier_stage_reads_is_a_copy_in_the_last() -> None:
    outputs = {"z": "x + w", "y": "(x + w)*rsqrt(mean((x + w)**2, axis=-1) + 1e-5)"}
    kernel = text_of(prototype("Both", outputs, "x", "w", types="float16 float32"), "op_kernel")
    assert kernel.count("class Kernel") == 1
    assert "Copy(zLocal, scratch0, count);" in kernel


def test_what_a_condition_chooses_is_summed_as_fractions() -> None:
    text = "sum(where(x > 0, 1, 0), axis=-1)"
    kernel = text_of(prototype("Count", {"y": text}, "x"), "op_kernel")
    assert kernel.count("class Kernel") == 1 and "LocalTensor<int32_t>" not in kernel
