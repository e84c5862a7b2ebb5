"""Rounds of loops in one operator each: the same values, for every operator and axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler import OPERATORS, Graph, GraphBuilder, Value, join_rounds, run_graph
from opkit.compiler.codegen.native import without_numbers
from opkit.compiler.passes.domain import domain_of
from opkit.compiler.passes.rounds.rules import has_rule

ROUNDS = 5
SHAPE = (4, 6, 8)
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "cast": [{"dtype": "int32"}],
    "reshape": [{"shape": shape} for shape in ((24, 8), (4, 48), (1, 4, 3, 2, 8), (192,))],
    "broadcast_to": [{"shape": (3, *SHAPE)}, {"shape": SHAPE}],
    "transpose": [{"axes": (0, 2, 1)}, {"axes": (2, 0, 1)}],
    "slice": [{"axis": axis, "start": 1, "stop": 3} for axis in range(3)],
    "pad": [{"widths": ((0, 1), (2, 0), (0, 3)), "value": 2.0}],
    **{name: [{"k": 3, "axis": axis} for axis in (0, -1)] for name in ("topk", "topk_places")},
}
ALONG = [{"axis": axis} for axis in (0, 1, -1)]
FOLDS = [
    {"axis": axis, "keepdims": keeps}
    for axis in (None, 0, (0, 2), (1, 2), -1)
    for keeps in (False, True)
]
APART = ("matmul", "take", "concat")
NAMES = [name for name in OPERATORS if has_rule(name) and name not in APART]


def settings_of(name: str) -> list[dict[str, Any]]:
    row = OPERATORS[name]
    if row.kind == "reduction":
        return FOLDS
    if name in SETTINGS:
        return SETTINGS[name]
    return ALONG if "axis" in row.parameters else [{}]


def part(x: Value, axis: int, at: int) -> Value:
    size = SHAPE[axis]
    return x.apply("slice", axis=axis, start=at * size, stop=(at + 1) * size)


def source(builder: GraphBuilder, name: str, axis: int, dtype: str = "float32") -> Value:
    shape = tuple(n * ROUNDS if at == axis else n for at, n in enumerate(SHAPE))
    return builder.input(name, shape, dtype)


def check(graph: Graph, *, joins: bool = True) -> Graph:
    """Return the graph with its rounds joined, once it gives what the graph gives."""
    joined = join_rounds(graph)
    assert (joined is not graph) == joins
    random = np.random.default_rng(5)
    arrays = {
        t.name: random.integers(0, 3, t.shape).astype(t.dtype)
        if "int" in t.dtype
        else random.uniform(0.1, 0.9, t.shape).astype(t.dtype)
        for t in graph.inputs
    }
    before, after = run_graph(graph, arrays), run_graph(joined, arrays)
    for (_, wanted), (_, found) in zip(graph.outputs, joined.outputs, strict=True):
        assert graph.tensors[wanted].dtype == joined.tensors[found].dtype
        np.testing.assert_allclose(after[found], before[wanted], rtol=1e-9, atol=1e-12)
    return joined


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_of_all_rounds_is_the_operator_of_each(name: str) -> None:
    row = OPERATORS[name]
    count = row.arity or 1
    is_whole = name.startswith(("bitwise", "whole"))
    for settings in settings_of(name):
        for axis in range(3):
            # Every other operand is the same in all rounds, of a lower rank, or both.
            for kind in range(1 if count == 1 else 4):
                builder = GraphBuilder()
                dtype = "int32" if is_whole else "float32"
                x = source(builder, "x", axis, dtype)
                same = builder.input("same", SHAPE, dtype)
                low = builder.input("low", (ROUNDS, SHAPE[-1]), dtype)
                turned = source(builder, "turned", (axis + 1) % 3, dtype)
                results = []
                for at in range(ROUNDS):
                    others = [
                        part(turned, (axis + 1) % 3, at),
                        same,
                        low.apply("slice", axis=0, start=at, stop=at + 1).reshape(SHAPE[-1]),
                        builder.constant(3 * at + 1, dtype),
                    ]
                    operands = [part(x, axis, at), *(others[kind:] + others)[: count - 1]]
                    if name == "where":
                        operands[0] = operands[0].apply("greater", 0.5)
                    value = builder.apply(name, *operands, **settings)
                    results.append(value.reshape(*value.shape) if value.ndim else value.reshape(1))
                builder.output("y", builder.apply("concat", *results, axis=0))
                joined = check(builder.graph())
                if row.kind != "movement":
                    assert sum(node.operator == name for node in joined.nodes) <= 2


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", ["left", "right", "both", "batch"])
def test_products(flags: tuple[bool, bool], kind: str) -> None:
    transpose_a, transpose_b = flags
    for axis_a in range(2):
        for axis_b in range(2):
            builder = GraphBuilder()
            wide = (ROUNDS * 6, 6) if axis_a == 0 else (6, ROUNDS * 6)
            a = builder.input("a", wide)
            b = builder.input("b", (ROUNDS * 6, 6) if axis_b == 0 else (6, ROUNDS * 6))
            fixed = builder.input("fixed", (3, 6, 6) if kind == "batch" else (6, 6))
            results = []
            for at in range(ROUNDS):
                left = a.apply("slice", axis=axis_a, start=6 * at, stop=6 * at + 6)
                right = b.apply("slice", axis=axis_b, start=6 * at, stop=6 * at + 6)
                left = fixed if kind == "right" else left
                right = fixed if kind in ("left", "batch") else right
                settings = {"transpose_a": transpose_a, "transpose_b": transpose_b}
                results.append(left.apply("matmul", right, **settings))
            for name, parts in (("beside", results), ("below", results)):
                axis = results[0].ndim - (1 if name == "beside" else 2)
                builder.output(name, builder.apply("concat", *parts, axis=axis))
            total = results[0]
            for each in results[1:]:
                total = total + each
            builder.output("total", total)
            joined = check(builder.graph())
            assert sum(node.operator == "matmul" for node in joined.nodes) <= 2


@pytest.mark.parametrize("operator", ["add", "maximum", "minimum"])
def test_chains_on_either_side_are_folded_and_their_ends_kept(operator: str) -> None:
    builder = GraphBuilder()
    x, first = source(builder, "x", 0), builder.input("first", SHAPE)
    total = first
    for at in range(ROUNDS):
        operands = (total, part(x, 0, at)) if at % 2 else (part(x, 0, at), total)
        total = builder.apply(operator, *operands)
    builder.output("y", total.apply(operator, first.apply("exp")))
    joined = check(builder.graph())
    assert sum(node.operator == operator for node in joined.nodes) <= 3


def test_a_chain_of_which_a_part_is_read_stays() -> None:
    builder = GraphBuilder()
    x = source(builder, "x", 0)
    total = part(x, 0, 0)
    for at in range(1, ROUNDS):
        total = total + part(x, 0, at)
        builder.output(f"y{at}", total)
    check(builder.graph(), joins=False)


def test_joined_tiles_of_two_kinds_and_other_tables() -> None:
    builder = GraphBuilder()
    x, table = source(builder, "x", 0), builder.input("table", (9, 8))
    places = builder.input("places", (ROUNDS, 7), "int32")
    results = []
    for at in range(ROUNDS):
        tile = part(x, 0, at).reshape(24, 8)
        row = places.apply("slice", axis=0, start=at, stop=at + 1).reshape(7)
        results += [tile, tile.apply("concat", table.apply("take", row, axis=0), axis=0)]
    builder.output("y", builder.apply("concat", *results, axis=0))
    joined = check(builder.graph())
    assert sum(node.operator == "take" for node in joined.nodes) == 1


def test_loops_inside_of_loops_are_joined_one_after_another() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (30, 40))
    rows = []
    for i in range(6):
        row = x.apply("slice", axis=0, start=5 * i, stop=5 * i + 5)
        tiles = [row.apply("slice", axis=1, start=8 * j, stop=8 * j + 8) for j in range(5)]
        rows.append(builder.apply("concat", *(t / t.sum(1, True) for t in tiles), axis=1))
    builder.output("y", builder.apply("concat", *rows, axis=0))
    joined = check(builder.graph())
    assert sum(node.operator == "sum" for node in joined.nodes) == 1


def test_what_is_not_the_same_at_other_places_stays() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (40, 40))
    diagonal = [
        x.apply("slice", axis=0, start=8 * at, stop=8 * at + 8)
        .apply("slice", axis=1, start=8 * at, stop=8 * at + 8)
        .apply("exp")
        for at in range(5)
    ]
    starts = (0, 8, 24, 16, 32)
    shuffled = [x.apply("slice", axis=0, start=s, stop=s + 8).apply("exp") for s in starts]
    numbers = [x * number for number in (0.1, 0.2, 0.3, 0.4, 0.5)]
    for name, parts in (("a", diagonal), ("b", shuffled), ("c", numbers)):
        builder.output(name, builder.apply("concat", *parts, axis=0))
    check(builder.graph(), joins=False)


def _carried(rounds: int) -> Graph:
    """Rounds that hand a row on, with a product each, so that none shares a kernel with another."""
    builder = GraphBuilder("carried")
    x, weight = builder.input("x", (rounds * 8, 32)), builder.input("weight", (32, 32))
    state = None
    rows = []
    for at in range(rounds):
        row = x.apply("slice", axis=0, start=8 * at, stop=8 * at + 8)
        state = row if state is None else (state.apply("matmul", weight) * 0.1 + row).apply("exp")
        state = state / state.sum(1, True)
        rows.append(state)
    builder.output("y", builder.apply("concat", *rows, axis=0))
    return builder.graph()


@pytest.mark.slow
def test_rounds_that_wait_for_each_other_share_their_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import opkit.compiler.launch.kernel_program as compiled

    made: list[str] = []
    real = compiled.compile_text

    def counted(name: str, *arguments: Any, **settings: Any) -> Any:
        made.append(name)
        return real(name, *arguments, **settings)

    monkeypatch.setattr(compiled, "compile_text", counted)
    counts = []
    for rounds in (4, 9):
        graph = _carried(rounds)
        assert join_rounds(graph) is graph
        arrays = {
            t.name: np.random.default_rng(3).normal(size=t.shape).astype(np.float32)
            for t in graph.inputs
        }
        made.clear()
        found = oc.compile(graph).run(arrays, {})["y"]
        wanted = run_graph(graph, arrays)[graph.outputs[0][1]]
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)
        counts.append(len(made))
    assert counts[0] == counts[1]


def test_texts_are_alike_where_only_numbers_differ() -> None:
    first = without_numbers("class Norm3 { t12 t7 }; int32_t norm_3(operand0T12, mte2);", "norm")
    assert first == without_numbers(
        "class Norm8 { t1 t20 }; int32_t norm_8(operand0T1, mte2);", "norm"
    )
    for other in (
        "class Norm8 { t1 t20 }; int32_t norm_8(operand0T20, mte2);",
        "class Norm8 { t1 t20 }; int16_t norm_8(operand0T1, mte2);",
        "class Norm8 { t1 t1 }; int32_t norm_8(operand0T1, mte2);",
        "class Norm8 { t1 t20 }; int32_t norm_7(operand0T1, mte2);",
    ):
        assert first != without_numbers(other, "norm")


def test_a_kernel_reads_no_more_tensors_than_its_tiles_have_room_for() -> None:
    builder = GraphBuilder("many")
    inputs = [builder.input(f"x{at}", (16, 64)) for at in range(70)]
    total = inputs[0]
    for each in inputs[1:]:
        total = (total + each).apply("abs")
    builder.output("y", total)
    graph = builder.graph()
    kernels = oc.compile_stages(graph, find_chip("Ascend910B2")).fused.groups
    assert 2 < len(kernels) < 6


def _recurrence(rounds: int, operator: str) -> oc.Graph:
    builder = GraphBuilder("long")
    value, given = builder.input("x", (8, 64)), builder.input("c", (8, 64))
    for _ in range(rounds):
        value = (value * 0.9 + given).apply(operator)
    builder.output("y", value)
    return builder.graph()


@pytest.mark.parametrize("operator", ["abs", "tanh"])
def test_a_long_recurrence_is_many_kernels_of_few_texts(operator: str) -> None:
    graph = _recurrence(300, operator)
    stages = oc.compile_stages(graph, find_chip("Ascend910B2"))
    kernels = stages.fused.groups
    assert len(kernels) > 5
    texts = {without_numbers(text, "long") for text in stages.texts.values()}
    # The first reads an input, the last writes the output and may be shorter.
    assert len(texts) <= 3
    # A text is some rounds, not all of them.
    assert max(len(group.nodes) for group in kernels) < len(stages.graph.nodes) / 4


def test_a_recurrence_cut_into_kernels_gives_what_its_rounds_give(run_program: Any) -> None:
    run_program(_recurrence(20, "tanh"))


def test_rounds_that_are_computed_twice_are_found_together() -> None:
    # Each round's value of one row is read by loops over all rows.
    builder = GraphBuilder("wide")
    row, rows = builder.input("x", (1, 64)), builder.input("c", (60, 64))
    most = rows
    for at in range(60):
        row = row * 0.9 + rows[at : at + 1]
        most = most.apply("maximum", row)
    builder.output("y", most)
    fused = oc.compile_stages(builder.graph(), find_chip("Ascend910B2")).fused
    for group in fused.groups:
        if group.kind == "vector":
            domain = domain_of(fused.graph, group.nodes)
            assert all(domain.is_written_once(name) for name in fused.outputs_of(group))
