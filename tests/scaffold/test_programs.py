"""Operators whose inputs' axes have names: the compiler makes their kernel."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import compiler
from opkit.algebra import FUNCTIONS
from opkit.compiler import computed_dimension, evaluate_formulas, shapes_at
from opkit.dtypes import find_dtype
from opkit.errors import SpecError, UsageError
from opkit.scaffold import render
from opkit.schema import ELEMENTWISE, ROWS, AttrSpec, OpSpec, dump, parse


def prototype(formulas: dict[str, str], **inputs: list[str | int]) -> OpSpec:
    entry: dict[str, Any] = {
        "op": "NamedAxes",
        "input_desc": [
            {"name": name, "type": "float16", "shape": axes} for name, axes in inputs.items()
        ],
        "output_desc": [
            {"name": name, "type": "float16", "formula": text} for name, text in formulas.items()
        ],
        "attr": [{"name": "eps", "type": "float", "param_type": "optional", "default_value": 1e-6}],
    }
    return parse(json.dumps(entry), file=Path("named_axes.json"))[0]


def tree_of(spec: OpSpec) -> dict[str, str]:
    return {str(path): text for path, text in render(spec).items()}


def test_a_norm_is_one_kernel_with_a_launch_for_each_schedule() -> None:
    tree = tree_of(
        prototype({"y": "x*rsqrt(mean(x**2, axis=-1) + eps)*w"}, x=["...", "C"], w=["C"])
    )
    kernel = tree["op_kernel/named_axes.cpp"]
    assert kernel.count("__global__ __aicore__") == 1
    assert "// mean(x**2)" in kernel
    assert "still to be written" not in kernel
    host = tree["op_host/named_axes.cpp"]
    assert "const int64_t leadingExtent = Leading(xShape, 1);" in host
    assert '"w has %ld elements along axis 0, expected C = %ld"' in host
    assert "*yShape = *xShape;" in host
    assert "tiling->factor1 = static_cast<float>(eps);" in host


def test_fast_math_lets_go_of_edges_in_the_kernel_and_in_the_reference() -> None:
    spec = prototype({"y": "sqrt(x)*sqrt(x)*w"}, x=["M", "N"], w=["N"])
    slow, fast = (tree_of(replace(spec, fast_math=flag)) for flag in (False, True))
    assert "Sqrt" in slow["op_kernel/named_axes.cpp"]
    assert "Sqrt" not in fast["op_kernel/named_axes.cpp"]
    (name,) = (each for each in fast if each.endswith("golden.py"))
    assert "fast_math=True" in fast[name]
    assert "fast_math=True" not in slow[name]


def test_the_gradient_is_an_operator_of_several_steps_that_share_a_launch() -> None:
    spec = prototype({"y": "x*rsqrt(mean(x**2, axis=-1) + eps)*w"}, x=["...", "C"], w=["C"])
    tree = tree_of(spec)
    backward = parse(tree["named_axes_grad.json"], file=Path("named_axes_grad.json"))[0]
    assert [tensor.axes for tensor in backward.inputs] == [("...", "C"), ("...", "C"), ("C",)]
    assert [tensor.name for tensor in backward.outputs] == ["grad_x", "grad_w"]
    kernel = tree["op_kernel/named_axes_grad.cpp"]
    assert kernel.count("__global__ __aicore__") == 1
    assert "tilingData.cores1" in kernel


def test_a_step_that_reads_what_other_cores_wrote_waits_for_them() -> None:
    tree = tree_of(prototype({"y": "x - mean(x, axis=0) * max(x, axis=1)"}, x=["M", "N"]))
    kernel = tree["op_kernel/named_axes.cpp"]
    assert kernel.index("SyncAll();") > kernel.index("GetUserWorkspace(workspace)")
    assert "roomBytes" in tree["op_host/named_axes.cpp"]


@pytest.mark.parametrize(
    ("formula", "axes", "cpp"),
    [
        ("sum(x, axis=0)", ["M", "N"], "gert::Shape({Dim(*xShape, 1)})"),
        ("max(x, axis=1, keepdims=True)", ["M", "N"], "gert::Shape({Dim(*xShape, 0), 1})"),
        ("sum(x, axis=-1)", ["...", "N"], "Reduce(*xShape, {-1}, false, yShape)"),
        ("x + 1", ["...", "N"], "*yShape = *xShape;"),
        ("sum(x)", ["M", "N"], "*yShape = gert::Shape({});"),
    ],
)
def test_the_shape_of_an_output_follows_from_its_formula(
    formula: str, axes: list[str | int], cpp: str
) -> None:
    assert cpp in tree_of(prototype({"y": formula}, x=axes))["op_host/named_axes.cpp"]


# Such a number used to have to be written out: "k" must be a number here.
def test_an_attribute_may_stand_where_a_number_must_and_other_values_are_refused() -> None:
    spec = prototype({"y": "topk(x, k) / sum(topk(x, k), axis=-1)"}, x=["M", "N"])
    attribute = AttrSpec("k", "int", required=False, default=2)
    host = tree_of(replace(spec, attrs=(attribute,)))["op_host/named_axes.cpp"]
    assert "if (k != 2) {" in host and "this kernel is made for 2" in host
    with pytest.raises(SpecError, match='"k" must be a number here') as caught:
        tree_of(replace(spec, attrs=(AttrSpec("k", "int", required=True),)))
    assert "default_value" in str(caught.value.help)


def test_a_type_that_no_kernel_computes_is_said_at_its_tensor() -> None:
    spec = prototype({"y": "x*cast(i, 'float32')"}, x=["M"], i=["M"])
    wide = replace(spec.inputs[1], dtypes=(find_dtype("uint64"),))
    with pytest.raises(SpecError, match='"i" is uint64') as caught:
        render(replace(spec, inputs=(spec.inputs[0], wide)), framework="aclnn")
    assert caught.value.pointer == "/input_desc/1/type"


def test_int64_is_taken_as_int32_by_a_kernel_of_its_own_and_other_values_are_refused() -> None:
    # It used to be refused: "the vector unit does not compute" it.
    spec = prototype({"y": "take_along(x, i, axis=-1) * i"}, x=["M", "N"], i=["M"])
    wide = replace(spec.inputs[1], dtypes=(find_dtype("int64"),))
    tree = tree_of(replace(spec, inputs=(spec.inputs[0], wide)))
    kernel = tree["op_kernel/named_axes.cpp"]
    # Buffers of numbers that a loop keeps have no room for eight bytes an element.
    assert kernel.count("GlobalTensor<int64_t>") == 1
    assert "Cast(t0Local, iLocal, RoundMode::CAST_NONE, count);" in kernel
    for extension in ("numpy_ext/named_axes_module.cpp", "torch_ext/named_axes_torch.cpp"):
        # The operator, and its gradient.
        assert tree[extension].count('inputs.check_int32("i");') == 2
    assert '"int64"' in tree["named_axes_grad.json"]


def test_an_output_that_is_another_one_or_an_input_is_a_tensor_of_its_own() -> None:
    tree = tree_of(prototype({"y": "x*2", "z": "x*2", "same": "x"}, x=["M"]))
    assert tree["op_kernel/named_axes.cpp"].count("Store(") == 4  # its definition, and three
    assert ".py:" not in tree["op_kernel/named_axes.cpp"]
    backward = tree["named_axes_grad.json"]
    # What no output gives an input's gradient is no term of it.
    assert backward.count("gradient(") == 3
    pair = tree_of(prototype({"y": "x + w", "z": "2*w"}, x=["M"], w=["M"]))
    outputs = json.loads(pair["named_axes_grad.json"])["output_desc"]
    assert [text["formula"].count("gradient(") for text in outputs] == [1, 2]


@pytest.mark.parametrize(
    ("formulas", "inputs", "pointer", "message"),
    [
        ({"y": "x + v"}, {"x": ["M"]}, "/output_desc/0/formula", '"v" is no input'),
        ({"z": "x", "y": "x @"}, {"x": ["M"]}, "/output_desc/1/formula", "not a formula"),
        (
            {"y": "sort(x)"},
            {"x": ["M", 8000]},
            "/output_desc/0/formula",
            "8000 elements do not fit a core",
        ),
        (
            {"y": "sum(x, axis=0)"},
            {"x": ["...", "N"]},
            "/output_desc/0/formula",
            "the shape of y does not follow",
        ),
    ],
)
def test_what_no_kernel_can_be_made_of_is_refused_at_its_place(
    formulas: dict[str, str], inputs: dict[str, list[str | int]], pointer: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message.replace("(", r"\(")) as caught:
        render(prototype(formulas, **inputs))
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("entry", "pointer", "message"),
    [
        ({"shape": ["M", 0]}, "/input_desc/0/shape/1", "0 is no axis"),
        ({"shape": ["M", "..."]}, "/input_desc/0/shape/1", "'...' is no axis"),
        ({"shape": ["M", "2*K+1"]}, "/input_desc/0/shape/1", 'no axis is "K" alone'),
        ({"shape": ["M", "M**2"]}, "/input_desc/0/shape/1", "'M**2' is no axis"),
        ({"shape": ["M", "int"]}, "/input_desc/0/shape/1", "reserved word"),
        ({"shape": ["M", "y"]}, "/input_desc/0/shape/1", "name of a tensor"),
        (
            {"shape": ["M"], "param_type": "optional"},
            "/input_desc/0/param_type",
            "is optional",
        ),
    ],
)
def test_a_wrong_axis_is_refused_at_its_place(
    entry: dict[str, Any], pointer: str, message: str
) -> None:
    document = {
        "op": "NamedAxes",
        "input_desc": [{"name": "x", "type": "float16", **entry}],
        "output_desc": [{"name": "y", "type": "float16", "formula": "x*2"}],
    }
    with pytest.raises(SpecError) as caught:
        parse(json.dumps(document), file=Path("named_axes.json"))
    assert caught.value.pointer == pointer
    assert message in caught.value.message


def test_axes_of_some_inputs_only_and_outputs_without_formula_are_refused() -> None:
    x = {"name": "x", "type": "float16", "shape": ["M"]}
    w = {"name": "w", "type": "float16"}
    y = {"name": "y", "type": "float16", "formula": "x*w"}
    for inputs, outputs, message in (
        ([x, w], [y], '"w" has no `shape`'),
        ([x], [{"name": "y", "type": "float16"}], '"y" has no formula'),
    ):
        document = {"op": "NamedAxes", "input_desc": inputs, "output_desc": outputs}
        with pytest.raises(SpecError) as caught:
            parse(json.dumps(document), file=Path("named_axes.json"))
        assert message in caught.value.message


def test_a_prototype_is_written_back_as_it_was() -> None:
    spec = prototype({"y": "x*2"}, x=["...", "C", 4])
    assert json.loads(dump(spec))["input_desc"][0]["shape"] == ["...", "C", 4]
    assert parse(dump(spec), file=spec.source)[0].inputs[0].axes == ("...", "C", 4)


def test_slices_ask_for_sizes_that_they_lie_within() -> None:
    tree = tree_of(prototype({"y": "x[:, 4:32] + x[:, -28:]"}, x=["M", "N"]))
    host = tree["op_host/named_axes.cpp"]
    assert "if (nExtent < 32) {" in host
    assert '"N is %ld, expected 32 or more"' in host
    assert "if (nExtent < 28) {" in host
    assert 'sizes={"N": 32}' in tree["named_axes/golden.py"]


def test_a_copy_waits_for_what_it_copies_and_takes_empty_tensors() -> None:
    tree = tree_of(prototype({"y": "concat(x, z*2, axis=1)"}, x=["M", "N"], z=["M", "K"]))
    host = tree["op_host/named_axes.cpp"]
    assert "isEmpty" not in host
    assert "Dim(*xShape, 1) + Dim(*zShape, 1)" in host or "Dim(*zShape, 1) + " in host
    assert "SyncAll();" in tree["op_kernel/named_axes.cpp"]


def test_steps_that_wait_for_no_core_wait_for_their_memory() -> None:
    formulas = {"y": "x*0.5", "z": "softmax(w)"}
    kernel = tree_of(prototype(formulas, x=["M", "N"], w=["K"]))["op_kernel/named_axes.cpp"]
    entry = kernel[kernel.index("__global__") :]
    assert "SyncAll" not in entry
    for event in ("MTE3_MTE2", "MTE3_V"):
        assert entry.count(f"SetFlag<HardEvent::{event}>(EVENT_ID0);") == 1
        assert entry.count(f"WaitFlag<HardEvent::{event}>(EVENT_ID0);") == 1


def test_places_in_a_table_have_a_limit_that_tests_keep_to() -> None:
    spec = parse(
        json.dumps(
            {
                "op": "NamedAxes",
                "input_desc": [
                    {"name": "table", "type": "float16", "shape": ["V", "D"]},
                    {"name": "token", "type": "int32", "shape": ["B", "S"]},
                ],
                "output_desc": [{"name": "y", "type": "float16", "formula": "take(table, token)"}],
            }
        ),
        file=Path("named_axes.json"),
    )[0]
    golden = tree_of(spec)["named_axes/golden.py"]
    assert 'return {"token": shapes["table"][0]}' in golden


def test_a_product_with_what_follows_it_runs_on_both_kinds_of_cores() -> None:
    tree = tree_of(prototype({"y": "relu(x @ w.T + b)"}, x=["M", "K"], w=["N", "K"], b=["N"]))
    kernel = tree["op_kernel/named_axes.cpp"]
    assert "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);" in kernel
    assert "if ASCEND_IS_AIC {" in kernel
    host = tree["op_host/named_axes.cpp"]
    assert "const CubeCut cut = CubeCutter(" in host
    assert "if (kExtent < 1) {" in host


def test_a_product_alone_runs_on_cube_cores_alone() -> None:
    kernel = tree_of(prototype({"y": "x @ w"}, x=["M", "K"], w=["K", "N"]))[
        "op_kernel/named_axes.cpp"
    ]
    assert "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);" in kernel


def test_steps_of_both_kinds_of_cores_wait_for_all_of_them() -> None:
    tree = tree_of(prototype({"y": "softmax((x*2) @ w, axis=-1)"}, x=["M", "K"], w=["K", "N"]))
    assert tree["op_kernel/named_axes.cpp"].count("SyncAll<false>();") == 2


def test_matrices_for_some_batches_only_are_refused() -> None:
    with pytest.raises(SpecError, match="is broadcast along some axes of"):
        render(prototype({"y": "x @ w"}, x=["B", 1, "M", "K"], w=["G", "K", "N"]))


def test_slices_and_numbers_may_be_of_named_sizes() -> None:
    tree = tree_of(prototype({"y": "x[:, :N // 2]*x[:, -(N // 2):]/N"}, x=["M", "N"]))
    host = tree["op_host/named_axes.cpp"]
    assert "*yShape = gert::Shape({Dim(*xShape, 0), (Dim(*xShape, 1) / 2)});" in host
    golden = tree["named_axes/golden.py"]
    assert "{\"x\": ('M', 'N')}," in golden
    assert 'sizes={"N": 2}' in golden


def test_a_formulas_value_follows_from_the_lengths_of_named_axes() -> None:
    x = np.arange(12.0).reshape(2, 6)
    found = evaluate_formulas({"y": "x[:, :N // 2] + N"}, {"x": x}, {}, {}, {"x": ("...", "N")})
    np.testing.assert_array_equal(found, x[:, :3] + 6)


def test_what_the_library_computes_is_called_and_said_once() -> None:
    tree = tree_of(prototype({"y": "sort(x)", "z": "sort(x, axis=0)"}, x=["M", "N"]))
    kernel = tree["op_kernel/named_axes.cpp"]
    assert kernel.count("struct LinePlan {") == 1
    assert kernel.count("opkit::kernels::sort_lines(x, values, nullptr, plan);") == 2
    assert "7680 - N is %ld, expected 0 or more" in tree["op_host/named_axes.cpp"]


def test_what_is_put_follows_a_copy_of_all() -> None:
    formula = "put_along(x, cast(i, 'int32'), s, axis=0)"
    tree = tree_of(prototype({"y": formula}, x=["M", "N"], i=["K", "N"], s=["K", "N"]))
    kernel = tree["op_kernel/named_axes.cpp"]
    put = kernel.index(" op;", kernel.index("Begin op;") + 9)
    assert kernel.index("Begin op;") < kernel.rindex("SyncAll();") < put
    assert "plan.cores = 1;" in kernel  # places along the first axis: in order


def test_a_seed_is_an_attribute() -> None:
    entry = {
        "op": "NamedAxes",
        "input_desc": [{"name": "x", "type": "float16", "shape": ["M", "N"]}],
        "output_desc": [{"name": "y", "type": "float16", "formula": "dropout(x, seed, 0.25)"}],
        "attr": [{"name": "seed", "type": "int", "param_type": "optional", "default_value": 7}],
    }
    tree = tree_of(parse(json.dumps(entry), file=Path("named_axes.json"))[0])
    host = tree["op_host/named_axes.cpp"]
    assert "->seed = static_cast<uint64_t>(static_cast<int64_t>(seedValue));" in host
    assert "named_axes_grad.json" in tree


def test_a_length_may_be_computed_of_others() -> None:
    tree = tree_of(prototype({"y": "x[:, :N]*x[:, N:]*w"}, x=["M", "2*N"], w=["N"]))
    host = tree["op_host/named_axes.cpp"]
    assert "if (xShape.GetDim(1) != 2 * nExtent) {" in host
    assert '"x has %ld elements along axis 1, expected 2*N = %ld"' in host
    assert shapes_at({"x": ("M", "2*N"), "w": ("N",)}, (3, 4)) == {"x": (3, 8), "w": (4,)}


@pytest.mark.parametrize(
    ("formula", "axes"),
    [
        ("concat(x, z, axis=1)", ("M", "K + N")),
        ("pad(x, ((0, 0), (1, 2)))", ("M", "N + 3")),
        ("x[:, ::2]", ("M", "(N + 1) // 2")),
    ],
)
def test_an_output_of_computed_lengths_has_a_gradient(
    formula: str, axes: tuple[str | int, ...]
) -> None:
    tree = tree_of(prototype({"y": formula}, x=["M", "N"], z=["M", "K"]))
    backward = parse(tree["named_axes_grad.json"], file=Path("named_axes_grad.json"))[0]
    assert backward.inputs[0].axes is not None
    assert [computed_dimension(str(each)) for each in backward.inputs[0].axes] == [
        computed_dimension(str(each)) for each in axes
    ]


def test_attention_is_made_of_products() -> None:
    tree = tree_of(
        prototype(
            {"y": "softmax(q @ transpose(k, (0, 2, 1))*rsqrt(D)) @ v"},
            q=["B", "S", "D"],
            k=["B", "T", "D"],
            v=["B", "T", "D"],
        )
    )
    assert tree["op_kernel/named_axes.cpp"].count("ASCEND_IS_AIC") >= 2


def test_functions_that_imply_axes_are_those_that_only_the_compiler_has() -> None:
    rows = {name: row for name, row in compiler.OPERATORS.items() if name not in FUNCTIONS}
    inner = {"log_one_plus", "tanh_softplus"}  # what equal forms are made of
    signs = {"add", "sub", "mul", "div", "neg", "less", "less_equal", "greater", "greater_equal"}
    signs |= {"equal", "not_equal", "logical_and", "logical_or", "logical_not"}
    signs |= {"bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor"}
    norms = {"layer_norm", "rms_norm"}  # of weights that are one row
    single = {name for name, row in rows.items() if row.kind == "elementwise" and row.shape}
    assert single - inner - signs - norms - ROWS | {"dropout"} == ELEMENTWISE
    along = {name for name, row in rows.items() if row.kind in ("reduction", "scan")}
    lines = {"softmax", "log_softmax", "argmax", "argmin", "take_along"}
    assert along - {"sum", "mean", "max", "min"} | lines == ROWS


@pytest.mark.parametrize(
    ("formula", "dtype"),
    [("erf(x)*p", "float32"), ("x**p", "float32"), ("x % 3", "int32"), ("softmax(x)", "float16")],
)
def test_formulas_without_axes_may_say_what_those_over_axes_say(formula: str, dtype: str) -> None:
    entry = {
        "op": "Implied",
        "input_desc": [{"name": "x", "type": dtype}],
        "output_desc": [{"name": "y", "type": dtype, "formula": formula}],
        "attr": [{"name": "p", "type": "float", "param_type": "optional", "default_value": 2.0}],
    }
    (spec,) = parse(json.dumps(entry), file=Path("implied.json"))
    tree = tree_of(spec)
    assert "still to be written" not in tree["op_kernel/implied.cpp"]
    assert "Leading(xShape" in tree["op_host/implied.cpp"]
    assert not re.search(r"\b(nan|inf)\b", tree["op_host/implied.cpp"])
    assert ("op_kernel/implied_grad.cpp" in tree) == (dtype != "int32")


@pytest.mark.parametrize(
    ("formula", "inputs", "host", "shapes"),
    [
        (
            "max(reshape(x, (N, C//2, 2)), axis=-1)",
            {"x": ["N", "C"]},
            '"C is %ld, expected a multiple of 2"',
            {"x": (3, 18)},
        ),
        (
            "chunk(x, 2, axis=-1)[0] * chunk(x, 2, axis=-1)[1]",
            {"x": ["N", "C"]},
            '"C is %ld, expected a multiple of 2"',
            {"x": (3, 18)},
        ),
        (
            "x[:, 0::2] * w - x[:, 1::2]",
            {"x": ["N", "C"], "w": ["C // 2"]},
            '"C is %ld, expected a multiple of 2"',
            {"x": (3, 18), "w": (9,)},
        ),
        (
            "sum(reshape(x, (-1, 8)), axis=0)",
            {"x": ["N", "C"]},
            '"C*N is %ld, expected a multiple of 8"',
            {"x": (3, 24)},
        ),
        # Where a divisor has a name, whether a core has nothing to do was no text of C++.
        (
            "reshape(x, (-1, D)) * w",
            {"x": ["N", "C"], "w": ["D"]},
            '"C*N is %ld, expected a multiple of D"',
            {"x": (1, 17), "w": (17,)},
        ),
    ],
)
def test_what_fits_for_multiples_only_asks_for_them_and_cases_keep_to_it(
    formula: str, inputs: dict[str, list[str | int]], host: str, shapes: Any
) -> None:
    # Cases broke what a `reshape` took for granted, and `chunk` of a named axis fitted nothing.
    tree = tree_of(prototype({"y": formula}, **inputs))
    assert host in tree["op_host/named_axes.cpp"]
    golden: dict[str, Any] = {}
    exec(next(text for path, text in tree.items() if path.endswith("golden.py")), golden)
    found = golden["named_axes_input_shapes"]((3, 17))
    assert found == shapes
    arrays = [np.ones(found[name]) for name in inputs]
    assert golden["named_axes"](*arrays).size > 0
    assert "op_kernel/named_axes_grad.cpp" in tree


def test_a_size_that_is_no_multiple_is_refused_by_compiled_programs() -> None:
    graph = compiler.formula_graph(
        "halves",
        [compiler.TensorSpec("x", (computed_dimension("C"),), "float32")],
        [compiler.FormulaOutput("y", "chunk(x, 2, axis=0)[0] * chunk(x, 2, axis=0)[1]")],
    )
    (limit,) = [each for each in compiler.size_limits(graph) if each.total != 0]
    assert (str(limit.total), str(limit.divisor), limit.wanted) == ("C", "2", "a multiple of 2")


def test_axes_before_the_last_may_be_any_beside_a_computed_one() -> None:
    entry = {
        "op": "Implied",
        "input_desc": [{"name": "x", "type": "float16"}],
        "output_desc": [
            {
                "name": "y",
                "type": "float16",
                "formula": ["a, b = x.chunk(2, dim=-1)", "F.silu(a) * b"],
            }
        ],
    }
    (spec,) = parse(json.dumps(entry), file=Path("implied.json"))
    tree = tree_of(spec)
    assert "yShape->SetDimNum(xShape->GetDimNum() - 1);" in tree["op_host/implied.cpp"]
    assert "yShape->AppendDim((Dim(*xShape, -1) / 2));" in tree["op_host/implied.cpp"]
    assert "op_kernel/implied_grad.cpp" in tree


def test_an_outputs_shape_may_repeat_what_its_formula_says() -> None:
    def entry(shape: list[str | int]) -> OpSpec:
        document = {
            "op": "NamedAxes",
            "input_desc": [{"name": "x", "type": "float", "shape": ["M", "N"]}],
            "output_desc": [
                {"name": "y", "type": "float", "shape": shape, "formula": "sum(x, axis=-1)"}
            ],
        }
        return parse(json.dumps(document), file=Path("named_axes.json"))[0]

    assert "{Dim(*xShape, 0), 1}" in tree_of(entry(["M", 1]))["op_host/named_axes.cpp"]
    assert "{Dim(*xShape, 0)}" in tree_of(entry(["M"]))["op_host/named_axes.cpp"]
    with pytest.raises(SpecError, match=r"is \[M\], and `shape` says \[N\]"):
        render(entry(["N"]))


@pytest.mark.parametrize(
    ("formula", "numpy"),
    [
        ("x - mean(x, axis=-1).unsqueeze(-1)", lambda x, t, w: x - x.mean(-1, keepdims=True)),
        ("x / sum(x, axis=-1)[:, None]", lambda x, t, w: x / x.sum(-1, keepdims=True)),
        ("w * mean(x, axis=-1)", lambda x, t, w: w * x.mean(-1, keepdims=True)),
        ("t * mean(x, axis=-1)", lambda x, t, w: t * x.mean(-1)),
        ("where(t > 0, -sum(x, axis=-1), 0.0)", lambda x, t, w: np.where(t > 0, -x.sum(-1), 0)),
        ("x.flatten() * 2", lambda x, t, w: x.reshape(-1) * 2),
        ("x.roll(1, -1)", lambda x, t, w: np.roll(x, 1, -1)),
        ("x.flip(-1)", lambda x, t, w: x[:, ::-1]),
        ("x.tril()", lambda x, t, w: np.tril(x)),
        ("triu(x, 1)", lambda x, t, w: np.triu(x, 1)),
        ("x.repeat(2, 3)", lambda x, t, w: np.tile(x, (2, 3))),
        ("repeat_interleave(x, 2, axis=1)", lambda x, t, w: np.repeat(x, 2, 1)),
        ("x.narrow(1, 1, 2)", lambda x, t, w: x[:, 1:3]),
        ("outer(t, w)", lambda x, t, w: np.outer(t, w)),
        ("zeros_like(x) + 1", lambda x, t, w: np.ones_like(x)),
        ("x.swapaxes(0, 1)", lambda x, t, w: x.T),
        ("x[:, [0]] if False else x", None),
    ],
)
def test_words_of_numpy_compute_what_numpy_does(formula: str, numpy: Any) -> None:
    spec = prototype({"y": formula}, x=["M", "N"], t=["M"], w=["N"])
    axes = {tensor.name: tensor.axes or () for tensor in spec.inputs}
    # As many rows as columns: names tell them apart, lengths do not.
    x, t, w = (np.random.default_rng(0).normal(size=size) for size in ((4, 4), (4,), (4,)))
    arrays = {"x": x, "t": t, "w": w}
    text = {"y": spec.outputs[0].formula or ""}
    if numpy is None:
        with pytest.raises(UsageError):
            evaluate_formulas(text, arrays, axes=axes)
        return
    assert np.allclose(evaluate_formulas(text, arrays, axes=axes), numpy(x, t, w))


def _attention(scores: Any, value: Any) -> Any:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


@pytest.mark.parametrize(
    ("settings", "scores"),
    [
        ("", lambda s, m: s / 2),
        ("is_causal=True", lambda s, m: np.where(np.tri(5) > 0, s / 2, -np.inf)),
        ("attn_mask=m", lambda s, m: s / 2 + m),
        ("attn_mask=m > 0", lambda s, m: np.where(m > 0, s / 2, -np.inf)),
        ("scale=3.0", lambda s, m: s * 3),
    ],
)
def test_attention_is_read_by_its_name_in_torch(settings: str, scores: Any) -> None:
    random = np.random.default_rng(1)
    q, k, v = (random.normal(size=(2, 5, 4)) for _ in range(3))
    m = np.eye(5) + np.where(random.normal(size=(5, 5)) > 0, 1.0, -1.0)
    text = f"scaled_dot_product_attention(q, k, v, {settings})"
    axes = {**dict.fromkeys("qkv", ("B", "S", "D")), "m": ("S", "S")}
    found = evaluate_formulas({"y": text}, {"q": q, "k": k, "v": v, "m": m}, axes=axes)
    assert np.allclose(found, _attention(scores(q @ k.swapaxes(-1, -2), m), v))


@pytest.mark.parametrize("text", ["bsd,btd->bst", "bsd,btd->bts", "bsd,btd->st", "bsd,dn->bsn"])
def test_einsum_of_two_tensors_is_a_product(text: str) -> None:
    random = np.random.default_rng(2)
    names = text.split("->")[0].split(",")
    sizes = {"b": 2, "s": 3, "t": 5, "d": 4, "n": 6}
    arrays = {
        name: random.normal(size=[sizes[letter] for letter in letters])
        for name, letters in zip("xw", names, strict=True)
    }
    found = evaluate_formulas({"y": f"einsum('{text}', x, w)"}, arrays)
    assert np.allclose(found, np.einsum(text, *arrays.values()))
    with pytest.raises(UsageError, match="a letter for each axis"):
        evaluate_formulas({"y": "einsum('bd,bd->b', x, w)"}, arrays)


def test_a_pad_may_be_written_as_in_torch() -> None:
    x = np.ones((2, 3))
    found = evaluate_formulas({"y": "pad(x, (1, 2))"}, {"x": x})
    assert np.array_equal(found, np.pad(x, ((0, 0), (1, 2))))


def test_the_gradient_of_a_mean_of_no_elements_has_none() -> None:
    # It divided by zero while the formula was read.
    arrays = {"gy": np.ones(()), "x": np.ones((0, 4))}
    assert evaluate_formulas({"g": "gradient(mean(x*x), gy, x)"}, arrays).shape == (0, 4)


def test_rows_are_looked_up_by_indexing() -> None:
    rows, places = np.arange(12.0).reshape(4, 3), np.array([2, 0, 1, 1])
    axes: dict[str, tuple[str | int, ...]] = {"x": ("N", "C"), "at": ("N",)}
    arrays = {"x": rows, "at": places}
    assert np.array_equal(evaluate_formulas({"y": "x[at]"}, arrays, axes=axes), rows[places])
    assert np.array_equal(evaluate_formulas({"y": "x[:, at]"}, arrays, axes=axes), rows[:, places])
    each = evaluate_formulas({"y": "x[arange(N), at]"}, arrays, axes=axes)
    assert np.array_equal(each, rows[np.arange(4), places])
    with pytest.raises(UsageError, match="names indices by tensors and otherwise"):
        evaluate_formulas({"y": "x[at, 0]"}, arrays, axes=axes)


def test_a_product_that_waits_for_no_core_waits_for_its_memory() -> None:
    formulas = {"y": "x @ w", "z": "x @ v"}
    kernel = tree_of(prototype(formulas, x=["M", "N"], w=["N", "K"], v=["N", "L"]))
    entry = kernel["op_kernel/named_axes.cpp"]
    entry = entry[entry.index("__global__") :]
    assert entry.count("PipeBarrier<PIPE_ALL>();") == 1
    assert "SyncAll" not in entry


def test_a_number_times_a_name_gives_the_name_its_value(tmp_path: Path) -> None:
    entry = {
        "op": "Gated",
        "input_desc": [
            {"name": "x", "type": "float32", "shape": ["N", "2*D"]},
            {"name": "w", "type": "float32", "shape": ["3*D"]},
        ],
        "output_desc": [
            {"name": "y", "type": "float32", "formula": "x[:, D:] * x[:, :D] * sum(w)"}
        ],
    }
    (spec,) = parse(json.dumps(entry), file=tmp_path / "gated.json")
    files = {str(path): text for path, text in render([spec], name="gated").items()}
    host = files["op_host/gated.cpp"]
    assert "dExtent = xShape.GetDim(1) / 2;" in host
    # The axis that gives the value is checked like the other: 5 is no 2*D.
    assert "if (xShape.GetDim(1) != 2 * dExtent) {" in host
    assert "if (wShape.GetDim(0) != 3 * dExtent) {" in host
    golden: dict[str, Any] = {}
    exec(files["gated/golden.py"], golden)
    x, w = np.arange(12.0).reshape(2, 6), np.ones(9)
    np.testing.assert_array_equal(golden["gated"](x, w), 9 * x[:, 3:] * x[:, :3])
    shapes = golden["gated_input_shapes"]((4, 8))
    assert shapes == {"x": (4, 16), "w": (24,)}


@pytest.mark.parametrize(
    "formula", ["torch.cummax(x, dim=-1).values", "median(x, axis=-1)", "quantile(x, eps, axis=0)"]
)
def test_what_runs_along_open_axes_has_kernels_for_it_and_its_gradient(formula: str) -> None:
    # Sizes that are divided twice, and tensors that are computed of sizes alone, ended in KeyError.
    tree = tree_of(prototype({"y": formula}, x=["N", "M"]))
    assert "named_axes_grad.json" in tree


@pytest.mark.parametrize("name", ["nonzero", "unique"])
def test_what_has_no_length_before_values_are_known_says_so(name: str) -> None:
    with pytest.raises((SpecError, UsageError)) as error:
        tree_of(prototype({"y": f"torch.{name}(x)"}, x=["N"]))
    assert "depends on values" in str(error.value.help)
