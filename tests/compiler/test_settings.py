"""Settings of operators: what people may write there, and that nothing else gets through."""

from __future__ import annotations

import random

import numpy as np
import pytest

import opkit.compiler as oc
from opkit.compiler.ir import Settings
from opkit.errors import UsageError

M, N, K = (oc.dimension(name) for name in "MNK")
INPUTS = (
    oc.TensorSpec("x", (M, N), "float32"),
    oc.TensorSpec("w", (M, N), "float32"),
    oc.TensorSpec("i", (K,), "int32"),
    oc.TensorSpec("v", (N,), "float16"),
    oc.TensorSpec("s", (), "float32"),
)


def graph_of(text: str) -> oc.Graph:
    return oc.formula_graph("op", INPUTS, [oc.FormulaOutput("y", text)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("take(x, i, axis=5)", "axis is 5, expected an axis from -2 to 1"),
        ("take(x, i, axis=-3)", "axis is -3, expected an axis from -2 to 1"),
        ("softmax(x, axis=3)", "axis is 3, expected an axis from -2 to 1"),
        ("softmax(s)", "axis is -1, expected none: a number has no axes"),
        ("argmax(x, axis=(0, 1))", "axis is (0, 1), expected an axis from -2 to 1"),
        ("stack(x, w, axis=3)", "axis is 3, expected an axis from -3 to 2"),
        ("transpose(x, 1)", "axes is 1, expected an order of the axes"),
        ("pad(x, (1, 2, 3))", "expected 2 pairs of elements before and behind"),
        ("pad(x, ((1, -5), (0, 0)))", "expected pairs of whole numbers from 0"),
        ("slice(x, 0, 0, 3, 0)", "step is 0, expected a whole number from 1"),
        ("windows(x, (2, 2))", "expected images of batch, rows, columns, channels"),
        ("gelu(x, 'erf')", "approximate is 'erf', expected 'none' or 'tanh'"),
        ("leaky_relu(x, 'a')", "slope is 'a', expected a number"),
        ("var(x, 0, False, 0.5)", "correction is 0.5, expected a whole number"),
        ("topk(x, 1.5)", "k is 1.5, expected a whole number or a size"),
        ("random_uniform(3, (-2,))", "has an axis of less than no elements"),
        ("broadcast_to(v, 'MN')", "shape is 'MN', expected sizes, one for each axis"),
        ("reshape(x, N, M)", "has 1 too many"),
        ("sum(3.0) + x", "takes a tensor, not a number"),
    ],
)
def test_a_setting_that_cannot_be_is_said(text: str, message: str) -> None:
    with pytest.raises(oc.GraphError) as caught:
        graph_of(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("take(x, i, axis=-1)", (M, K)),
        ("concat(x, w, axis=-1)", (M, 2 * N)),
        ("transpose(x, (-1, 0))", (N, M)),
        ("argmin(x)", (M,)),
        ("random_normal(3, 4)", (4,)),
    ],
)
def test_axes_count_from_the_end_as_well(text: str, shape: oc.Shape) -> None:
    graph = graph_of(text)
    assert graph.tensors[graph.outputs[0][1]].shape == shape


def test_axes_from_the_end_give_what_numpy_gives() -> None:
    x = np.arange(12.0).reshape(3, 4)
    places = np.array([2, 0], np.int32)
    found = oc.evaluate_formulas({"y": "take(x, i, axis=-1)"}, {"x": x, "i": places})
    np.testing.assert_array_equal(found, x[:, [2, 0]])


OPERANDS = "x w i v s 3 -1 0 1.5 'no' 'float16' (0,1) (-1,) [x,w] N (M,N) None True () {} ... x.T"
KINDS = ("elementwise", "reduction", "movement", "index", "scan", "line", "product", "random")


def call_of(random_numbers: random.Random) -> str:
    """Return a call of an operator with operands and settings of any kind."""
    operands = OPERANDS.split()
    rows = [row for row in oc.OPERATORS.values() if row.kind in KINDS]
    row = random_numbers.choice(rows)
    count = 2 if row.arity is None else row.arity
    count = max(0, count + random_numbers.choice([0, 0, 0, 1, 2, -1]))
    arguments = [random_numbers.choice(operands) for _ in range(count)]
    arguments += [
        f"{name}={random_numbers.choice(operands)}"
        for name in row.parameters
        if random_numbers.random() < 0.6
    ]
    return f"{row.name}({', '.join(arguments)})"


def test_no_call_whatever_it_is_given_is_more_than_a_mistake() -> None:
    random_numbers = random.Random(20)
    taken = 0
    for _ in range(3000):
        text = call_of(random_numbers)
        try:
            graph_of(text)
            taken += 1
        except UsageError:
            pass
        except Exception as err:
            pytest.fail(f"{text}: {err!r}")
    assert taken > 100


def test_readers_of_settings_say_which_is_of_another_kind():
    settings = Settings(axis=-1, start=2 * N, p="half", axes=(0, 1), none=None)
    assert settings.integer("axis") == -1
    assert settings.axis(3) == 2
    assert settings.axes(2, "none") == (0, 1)
    for read, expected in (
        (
            lambda: settings.integer("start"),
            'start" is 2\\*N, expected a whole number',
        ),
        (lambda: settings.integer("p"), "the setting \"p\" is 'half', expected a whole number"),
        (lambda: settings.number("p"), "expected a number"),
        (lambda: settings.text("axis"), "expected a text"),
        (lambda: settings.truth("axis"), "expected True or False"),
        (lambda: settings.axis(2, "axes"), "expected one axis"),
        (lambda: settings.axis(0), "axis -1 does not exist"),
        (
            lambda: settings.integer("width"),
            '"width" is missing: there are axis, start',
        ),
    ):
        with pytest.raises(UsageError, match=expected):
            read()
