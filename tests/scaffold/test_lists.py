"""Formulas over lists of tensors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.compiler import evaluate_formulas
from opkit.errors import SpecError
from opkit.scaffold import render
from opkit.schema import OpSpec, parse

Entry = dict[str, Any]


def tensors(name: str, **fields: Any) -> Entry:
    return {"name": name, "param_type": "dynamic", "type": "float32", **fields}


def tensor(name: str, **fields: Any) -> Entry:
    return {"name": name, "type": "float32", **fields}


def prototype(inputs: list[Entry], outputs: list[Entry]) -> OpSpec:
    entry = {"op": "OfLists", "input_desc": inputs, "output_desc": outputs}
    return parse(json.dumps(entry), file=Path("of_lists.json"))[0]


def tree_of(spec: OpSpec) -> dict[str, str]:
    return {str(path): text for path, text in render(spec).items()}


def test_lists_without_axes_are_computed_tensor_by_tensor() -> None:
    spec = prototype([tensors("xs"), tensors("ys")], [tensors("zs", formula="xs * ys")])
    assert [each.axes for each in spec.inputs] == [("...",), ("...",)]


def test_a_kernel_joins_lists_before_its_steps_and_splits_them_after() -> None:
    spec = prototype([tensors("xs"), tensors("ys")], [tensors("zs", formula="xs * ys")])
    kernel = tree_of(spec)["op_kernel/of_lists.cpp"]
    entry = kernel[kernel.index("__global__ __aicore__") :]
    order = ["lists.join(xs", "lists.join(ys", "SyncAll", "op.Process", "SyncAll", "lists.split("]
    places = [0]
    for text in order:
        places.append(entry.index(text, places[-1]))
    assert places == sorted(places)


def test_cores_that_multiply_have_vector_cores_join_their_lists() -> None:
    spec = prototype(
        [tensors("xs", shape=["L", "M", "K"]), tensor("w", shape=["K", "N"])],
        [tensor("y", formula="xs @ w")],
    )
    kernel = tree_of(spec)["op_kernel/of_lists.cpp"]
    assert "KERNEL_TYPE_MIX_AIC_1_2" in kernel
    assert "if ASCEND_IS_AIV {\n        opkit::kernels::ListTensors lists;" in kernel


def test_an_output_s_shape_may_count_a_list() -> None:
    spec = prototype(
        [tensors("xs", shape=["L", "C"])], [tensor("y", formula="concat(xs, xs, axis=0)")]
    )
    tree = tree_of(spec)
    assert "context->GetIrInputInstanceInfo(0)->GetInstanceNum()" in tree["op_host/of_lists.cpp"]
    (module,) = (text for path, text in tree.items() if path.endswith("_torch.py"))
    assert re.search(r"\(\(?2 \* len\(t\[0\]\)\)?, t\[0\]\[0\]\.shape\[0\]\)", module)


def test_a_shape_without_a_formula_counts_a_list_too() -> None:
    spec = prototype([tensors("xs")], [tensor("y", shape=["len(xs)", "xs[-1]"])])
    assert "(len(t[0]), t[0][0].shape[-1])" in "".join(tree_of(spec).values())


def test_the_gradient_of_a_list_is_a_list() -> None:
    spec = prototype(
        [tensors("xs", shape=["L", "N"])], [tensor("y", formula="sum(xs * xs, axis=0)")]
    )
    backward = parse(tree_of(spec)["of_lists_grad.json"], file=Path("of_lists_grad.json"))[0]
    assert [each.is_list for each in backward.inputs] == [False, True]
    assert [(each.name, each.is_list) for each in backward.outputs] == [("grad_xs", True)]


def test_the_reference_takes_tensors_of_one_shape_as_one_behind_the_other() -> None:
    xs = [np.arange(6.0).reshape(2, 3), np.ones((2, 3))]
    total, doubled = evaluate_formulas(
        {"total": "sum(xs, axis=0)", "doubled": "xs * 2"},
        {"xs": xs},
        axes={"xs": ("L", "N", "C")},
        lists=["xs", "doubled"],
    )
    np.testing.assert_array_equal(total, xs[0] + xs[1])
    assert [each.shape for each in doubled] == [(2, 3), (2, 3)]
    np.testing.assert_array_equal(doubled[0], xs[0] * 2)


def test_the_reference_takes_tensors_of_any_shapes_as_rows_below_each_other() -> None:
    xs = [np.arange(8.0).reshape(2, 1, 4), np.ones(4), np.zeros((0, 4)), np.full((3, 4), 2.0)]
    result = evaluate_formulas(
        {"ys": "xs - mean(xs, axis=-1)"},
        {"xs": xs},
        axes={"xs": ("...", "columns")},
        lists=["xs", "ys"],
    )
    assert [each.shape for each in result] == [each.shape for each in xs]
    for found, given in zip(result, xs, strict=True):
        np.testing.assert_allclose(found, given - given.mean(axis=-1, keepdims=True))


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        (
            [tensors("xs", shape=["2*N", "N"])],
            [tensor("y", formula="sum(xs, axis=0)")],
            r"/input_desc/0/shape.*the first axis of \"xs\", a list",
        ),
        (
            [tensors("xs", shape=["..."]), tensor("w", shape=["...", "N"])],
            [tensors("y", formula="xs")],
            r"/input_desc/0/shape/0.*stands for all tensors of a list",
        ),
        (
            [tensors("xs", shape=["L", "N"])],
            [tensors("y", formula="sum(xs, axis=-1)")],
            r"/output_desc/0/formula.*\[L\].*the first list, \"xs\": \[L, N\]",
        ),
        (
            [tensors("xs", shape=["...", "N"])],
            [tensor("y", formula="sum(xs, axis=-1)")],
            r"/output_desc/0/formula.*all tensors of a list together",
        ),
        (
            [tensors("xs"), tensor("w")],
            [tensors("y", formula="xs * w")],
            r"\"xs\" is dynamic; a formula takes required ones only",
        ),
        (
            [
                tensors("xs", shape=["L", "N"]),
                {**tensor("w", shape=["N"]), "param_type": "optional"},
            ],
            [tensors("y", formula="xs * w")],
            r"/input_desc/1/param_type.*\"w\" is optional",
        ),
        (
            [tensor("x"), tensors("xs")],
            [tensor("y", shape=["len(x)"])],
            r"/output_desc/0/shape.*no dimension.*len\(xs\) of a list",
        ),
    ],
    ids=[
        "computed length",
        "two kinds of ...",
        "other shapes",
        "no tensor's",
        "no axes",
        "optional",
        "len",
    ],
)
def test_what_lists_cannot_be_is_said_where_it_stands(
    inputs: list[Entry], outputs: list[Entry], words: str
) -> None:
    with pytest.raises(SpecError) as caught:
        tree_of(prototype(inputs, outputs))
    assert re.search(words, str(caught.value), re.DOTALL)
