"""Every pass from a front end's graph to kernels, in the order in which they run, each with its
condition: one list for all targets.

A target says what it lowers a graph for, as a `Lowering`; nothing else decides which passes run.
`passes_of` returns the graph after each pass, which `opkit compile --dump PASS` prints. With
`OPKIT_VERIFY_PASSES=1`, as in opkit's tests, each pass's result is checked to be well formed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opkit import log

from ..ir import Graph, allowance
from .attention_layout import absorb_transposes
from .attention_pattern import recognise_attention
from .collapsing import collapse
from .cutting import cut_parts
from .equal_forms import in_equal_form
from .fusion import FusedGraph, fuse
from .own_outputs import with_own_outputs
from .prologues import fuse_prologues
from .rewrite import expand, simplify
from .sharing import share_reductions
from .sinking import join_slices, movements, sink_casts, sink_transposes
from .verifier import check_fused, check_graph
from .windows import place_windows

if TYPE_CHECKING:
    from opkit import algebra

__all__ = ["PASSES", "FormulaForm", "Lowering", "Pass", "lower", "passes_of", "rewritten"]

VERIFY = "OPKIT_VERIFY_PASSES"

Purpose: TypeAlias = Literal["program", "operator", "model", "kernel", "cpp", "triton", "pto"]
"""What kernels are made for: a `program` of Python, a generated `operator`, a `model` of torch and
then each `kernel` of it, or one of the targets that are not the chip."""
_ON_CHIP: tuple[Purpose, ...] = ("program", "operator", "model", "kernel")
_FROM_WHOLE: tuple[Purpose, ...] = ("program", "operator", "model")
_WITH_KERNELS: tuple[Purpose, ...] = (*_ON_CHIP, "cpp", "triton")
_ALL: tuple[Purpose, ...] = (*_WITH_KERNELS, "pto")


@dataclass(frozen=True)
class FormulaForm:
    """How formulas are brought into equal forms before anything else."""

    fast_math: bool = False
    """Let go of what NaN, infinities and signed zeros would be."""
    written: Mapping[str, algebra.Node] | None = None
    """The outputs' formulas, element by element, where they have been read."""


@dataclass(frozen=True)
class Lowering:
    """What a graph is lowered for; the passes' conditions look at nothing else."""

    purpose: Purpose
    formulas: FormulaForm | None = None
    """Form of a graph that was made of formulas."""
    fast_math: bool = False
    """Roundings to 16 bits that the program states may be left out."""
    apart: bool = False
    """Each operator is a kernel of its own."""
    sharing_cores: int = 0
    """Cores that share a reduction to few numbers; 0: each number is one core's."""
    triangles: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Inputs whose truths are known, as `recognise_attention` takes them."""
    kernel: FusedGraph | None = None
    """For a `kernel`: it, as it was fused with the rest of its model."""


Program: TypeAlias = Graph | FusedGraph
Steps: TypeAlias = tuple[tuple["Pass", Program], ...]


@dataclass(frozen=True)
class Pass:
    """One row of the list."""

    name: str
    does: str
    """In a few words."""
    purposes: tuple[Purpose, ...]
    run: Callable[[Any, Lowering], Program]
    needs: Callable[[Lowering], bool] = lambda _: True
    when: str = ""
    """What `needs` asks for, in words."""
    after: str = ""
    """Runs only where the pass of this name has changed the graph."""
    unless: str = ""
    """Does not run where the pass of this name has changed the graph."""
    kept_until: str = ""
    """The pass of this name is the last before what this one did is weighed: it is kept where fewer
    kernels then only move elements."""

    @property
    def condition(self) -> str:
        """When it runs, in words."""
        purposes = "" if self.purposes == _ALL else f"for {', '.join(self.purposes)}"
        after = f"where {self.after} changed the graph" if self.after else ""
        unless = f"unless {self.unless} did" if self.unless else ""
        kept = "kept where fewer kernels only move elements" if self.kept_until else ""
        parts = (purposes, self.when, after, unless, kept)
        return ", ".join(part for part in parts if part) or "always"

    def runs_for(self, lowering: Lowering) -> bool:
        """Return whether it runs for a purpose, whatever the passes before it did."""
        return lowering.purpose in self.purposes and self.needs(lowering)


def _in_equal_form(graph: Graph, lowering: Lowering) -> Graph:
    form = lowering.formulas
    assert form is not None
    return in_equal_form(graph, fast_math=form.fast_math, written=form.written)


def _as_it_was_fused(graph: Graph, lowering: Lowering) -> Program:
    kernel = lowering.kernel
    return kernel if kernel is not None and kernel.graph == graph else graph


PASSES: tuple[Pass, ...] = (
    Pass(
        *("equal_forms", "formulas in forms that lose no digits and cost less", ("operator",)),
        _in_equal_form,
        needs=lambda lowering: lowering.formulas is not None,
        when="where the graph is of formulas",
    ),
    Pass(
        "own_outputs",
        "outputs that are inputs or other outputs as copies",
        ("operator", "model"),
        lambda graph, _: with_own_outputs(graph),
        needs=lambda lowering: lowering.purpose == "model" or lowering.formulas is not None,
        when="operators where the graph is of formulas",
    ),
    Pass(
        "attention",
        "a softmax between two products as one operator",
        ("program", "model", "triton"),
        lambda graph, lowering: recognise_attention(graph, lowering.triangles),
    ),
    Pass(
        "expand",
        "composite operators taken apart; kernels of programs reduce whole numbers by themselves",
        _ALL,
        lambda graph, lowering: expand(
            graph, fractions_only=lowering.purpose in ("program", "operator", "kernel")
        ),
    ),
    Pass(
        *("simplify", "equal work done once, arithmetic that costs less", _ALL),
        lambda graph, lowering: simplify(graph, fast_math=lowering.fast_math),
    ),
    Pass(
        "cut_parts",
        "element-wise work on parts: behind slices, before concatenations",
        ("model",),
        lambda graph, _: cut_parts(graph),
    ),
    Pass(
        *("simplify_parts", "equal parts once", ("model",)),
        lambda graph, _: simplify(graph),
        after="cut_parts",
    ),
    Pass(
        *("sink_transposes", "transposes as far behind as they go", ("model",)),
        lambda graph, _: sink_transposes(graph),
        kept_until="join_slices",
    ),
    Pass(
        *("simplify_sunk", "transposes that have met, gone", ("model",)),
        lambda graph, _: simplify(graph),
        after="sink_transposes",
    ),
    Pass(
        *("collapse", "work on a product's rows, in the product's two axes", ("model",)),
        lambda graph, _: collapse(graph),
    ),
    Pass(
        *("simplify_collapsed", "changes of shape that have met, gone", ("model",)),
        lambda graph, _: simplify(graph),
        after="collapse",
    ),
    Pass(
        *("sink_casts", "casts that narrow, before changes of shape", _FROM_WHOLE),
        lambda graph, _: sink_casts(graph),
    ),
    Pass(
        *("absorb_transposes", "heads that attention reads and writes where they lie", _FROM_WHOLE),
        lambda graph, _: absorb_transposes(graph),
    ),
    Pass(
        *("join_slices", "slices put side by side as one kernel's work", ("model", "program")),
        lambda graph, _: join_slices(graph),
    ),
    Pass(
        *("share_reductions", "reductions to few numbers in two steps", ("program", "kernel")),
        lambda graph, lowering: share_reductions(
            graph, lowering.sharing_cores, is_planned=lowering.purpose == "kernel"
        ),
        needs=lambda lowering: lowering.sharing_cores > 0,
        when="on chips that copy rows of any length",
    ),
    Pass(
        *("keep_kernel", "a kernel that no pass has changed stays as it was fused", ("kernel",)),
        lambda graph, lowering: _as_it_was_fused(graph, lowering),
    ),
    Pass(
        "simplify_shared",
        "what follows a shared reduction, in its last step",
        ("program", "kernel"),
        lambda graph, lowering: simplify(graph, fast_math=lowering.fast_math),
        after="share_reductions",
    ),
    Pass(
        *("fuse", "which operators share a kernel", _WITH_KERNELS),
        lambda graph, lowering: fuse(graph, apart=lowering.apart),
        unless="keep_kernel",
    ),
    Pass(
        "fuse_prologues",
        "what products multiply, computed in their kernels",
        ("program", "model", "kernel"),
        lambda fused, _: fuse_prologues(fused),
        needs=lambda lowering: not lowering.apart,
        when="where operators may share kernels",
        unless="keep_kernel",
    ),
    Pass(
        *(
            "place_windows",
            "slices and concatenations that kernels read and write in place",
        ),
        ("model", "kernel"),
        lambda fused, _: place_windows(fused),
        unless="keep_kernel",
    ),
)
"""In order. Names are those of `opkit compile --dump`."""


@allowance()
def passes_of(graph: Graph, lowering: Lowering) -> Steps:
    """Return each pass that runs for a purpose, and what it makes of the graph."""
    return _steps(PASSES, graph, lowering, frozenset())


def lower(graph: Graph, lowering: Lowering) -> FusedGraph:
    """Return a graph as kernels.

    Raises:
        GraphError: it cannot be compiled; at the user's line.
    """
    *_, (_, result) = passes_of(graph, lowering)
    assert isinstance(result, FusedGraph)
    return result


def rewritten(graph: Graph, lowering: Lowering) -> Graph:
    """Return a graph as it is for a target that has no kernels.

    Raises:
        GraphError: it cannot be compiled; at the user's line.
    """
    *_, (_, result) = passes_of(graph, lowering)
    assert isinstance(result, Graph)
    return result


def _steps(
    passes: Sequence[Pass], program: Program, lowering: Lowering, changed: frozenset[str]
) -> Steps:
    """Run passes one after another.

    Args:
        changed: the passes before these that changed the graph.
    """
    found: list[tuple[Pass, Program]] = []
    names = [each.name for each in passes]
    at = 0
    while at < len(passes):
        each = passes[at]
        at += 1
        if not each.runs_for(lowering) or (each.after and each.after not in changed):
            continue
        if each.unless in changed:
            continue
        result = _checked(each, each.run(program, lowering))
        is_changed = result != program
        if each.kept_until and is_changed:
            end = names.index(each.kept_until) + 1
            rest = passes[at:end]
            without = _steps(rest, program, lowering, changed)
            behind = _steps(rest, result, lowering, changed | {each.name})
            is_kept = movements(_last(behind, result)) < movements(_last(without, program))
            found += [(each, result), *behind] if is_kept else without
            at = end
        else:
            found.append((each, result))
            changed = changed | {each.name} if is_changed else changed
        program = found[-1][1] if found else program
    return tuple(found)


def _last(steps: Steps, graph: Program) -> Graph:
    last = steps[-1][1] if steps else graph
    assert isinstance(last, Graph)
    return last


def _checked(each: Pass, result: Program) -> Program:
    """Return a pass's result, logged, and checked where that is asked for."""
    graph = result.graph if isinstance(result, FusedGraph) else result
    log.debug("COMPILER", "pass", name=each.name, graph=graph.name, nodes=len(graph.nodes))
    if os.environ.get(VERIFY, "0") not in ("", "0"):
        check_graph(graph, after=each.name)
        if isinstance(result, FusedGraph):
            check_fused(result, after=each.name)
    return result
