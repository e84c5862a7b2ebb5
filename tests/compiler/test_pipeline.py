"""The list of passes: one order for all targets, each pass checked after the fact."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler.ir import Graph
from opkit.compiler.passes import (
    PASSES,
    DamagedGraph,
    FusedGraph,
    Lowering,
    check_fused,
    check_graph,
    lower,
    passes_of,
    pipeline,
)

ROOT = Path(__file__).parents[2] / "opkit"
CHIP = find_chip("Ascend910B2")
IN_THE_LIST_ONLY = {
    *("recognise_attention", "absorb_transposes", "sink_transposes", "collapse", "join_slices"),
    *("share_reductions", "fuse", "fuse_prologues", "cut_parts", "place_windows"),
}


def norm() -> Graph:
    def function(x: Any, weight: Any) -> Any:
        return x.apply("rms_norm", weight)

    specs = (oc.TensorSpec("x", (20, 48), "float16"), oc.TensorSpec("weight", (48,), "float16"))
    return oc.trace(function, specs)


def test_passes_run_from_the_list_only() -> None:
    # There were six orders of passes, in five files.
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in IN_THE_LIST_ONLY:
                    found.append(path.relative_to(ROOT).as_posix())
    assert set(found) == {"compiler/passes/pipeline.py"}


def test_each_pass_has_one_name_and_says_when_it_runs() -> None:
    names = [each.name for each in PASSES]
    assert len(set(names)) == len(names)
    for each in PASSES:
        assert each.does and each.condition
        assert not each.after or each.after in names[: names.index(each.name)]


def test_fusion_runs_once_and_after_every_pass_over_graphs() -> None:
    purposes = ("program", "operator", "model", "kernel", "cpp", "triton")
    for purpose in purposes:
        ran = [each.name for each, _ in passes_of(norm(), Lowering(purpose))]
        assert ran.count("fuse") == 1
        assert set(ran[ran.index("fuse") :]) <= {"fuse", "fuse_prologues", "place_windows"}
    assert "fuse" not in [each.name for each, _ in passes_of(norm(), Lowering("pto"))]


def test_a_pass_that_gains_nothing_is_left_out() -> None:
    def function(x: Any) -> Any:
        return x.transpose(1, 0).apply("exp")

    graph = oc.trace(function, [oc.TensorSpec("x", (20, 48), "float16")])
    ran = [each.name for each, _ in passes_of(graph, Lowering("model"))]
    assert "sink_transposes" not in ran and "join_slices" in ran

    def there_and_back(x: Any) -> Any:
        return x.transpose(1, 0).apply("exp").transpose(1, 0)

    graph = oc.trace(there_and_back, [oc.TensorSpec("x", (20, 48), "float16")])
    ran = [each.name for each, _ in passes_of(graph, Lowering("model"))]
    assert ran.index("sink_transposes") + 1 == ran.index("simplify_sunk")


def test_a_pass_that_damages_a_graph_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(graph: Graph, _: Lowering) -> Graph:
        last = graph.nodes[-1]
        wrong = replace(last, output=replace(last.output, dtype="int32"))
        return replace(graph, nodes=(*graph.nodes[:-1], wrong))

    rows = [replace(each, run=damaged) if each.name == "simplify" else each for each in PASSES]
    monkeypatch.setattr(pipeline, "PASSES", tuple(rows))
    monkeypatch.setenv("OPKIT_VERIFY_PASSES", "1")
    with pytest.raises(DamagedGraph, match=r"after simplify: .* gives float16") as found:
        lower(norm(), Lowering("program"))
    assert found.value.after == "simplify"


def test_damaged_graphs_are_found() -> None:
    graph = oc.expand(norm())
    check_graph(graph, after="expand")
    first, *rest = graph.nodes
    last = rest[-1]
    unread = replace(last, output=replace(last.output, name="unread"))
    wide = replace(last, output=replace(last.output, shape=(20, 49)))
    odd = replace(last, output=replace(last.output, dtype="float17"))
    damaged = {
        "nothing before it computes": replace(graph, nodes=tuple(rest)),
        "computed twice": replace(graph, nodes=(first, *graph.nodes)),
        "gives the shape": replace(graph, nodes=(first, *rest[:-1], wide)),
        "has no data type": replace(graph, nodes=(first, *rest[:-1], odd)),
        "no output needs unread": replace(graph, nodes=(*graph.nodes, unread)),
        "which nothing computes": replace(graph, outputs=(("y", "absent"),)),
        "two inputs have one name": replace(graph, inputs=(*graph.inputs, graph.inputs[0])),
        "there is no such operator": replace(
            graph, nodes=(*graph.nodes[:-1], replace(last, operator="norm"))
        ),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(DamagedGraph, match=problem):
            check_graph(wrong, after="expand")


def test_damaged_partitions_are_found() -> None:
    def function(x: Any) -> Any:
        return x.apply("exp").transpose(1, 0).apply("exp")

    graph = oc.trace(function, [oc.TensorSpec("x", (20, 48), "float16")])
    fused = lower(graph, Lowering("program"))
    check_fused(fused, after="fuse")
    first, second, third = fused.groups
    damaged: dict[str, FusedGraph] = {
        "before it is computed": replace(fused, groups=(second, first, third)),
        r"computes .* again": replace(fused, groups=(first, second, third, third)),
        "no kernel computes": replace(fused, groups=(first, second)),
        "one name": replace(fused, groups=(first, second, replace(third, name=first.name))),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(DamagedGraph, match=problem):
            check_fused(wrong, after="fuse")


def test_what_counts_up_in_a_formula_has_the_formulas_own_line() -> None:
    # It had the line of opkit's that had called the compiler, and kernels changed with that file.
    outputs = [oc.FormulaOutput("y", "x + arange(N)", "float32")]
    x = oc.TensorSpec("x", (8, oc.dimension("N")), "float32")
    graph = oc.in_equal_form(oc.formula_graph("counted", [x], outputs))
    places = [node.location for node in graph.nodes if node.operator == "arange"]
    assert places and all(place is not None and place.file == "formula" for place in places)


def test_stages_are_what_the_last_pass_leaves() -> None:
    stages = oc.compile_stages(norm(), CHIP)
    (*_, (_, last)) = passes_of(stages.traced, stages.lowering)
    assert last == stages.fused and stages.fused.graph == stages.graph
