"""Graphs of formulas in the equal forms that lose no digits, do not overflow and cost less.

A graph becomes trees of `opkit.algebra`, is rewritten there, and becomes a graph again. Programs
are not treated so: who writes one may mean each rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from opkit import algebra

from ...ir import Graph
from .from_graph import Trees, trees_of
from .gradients import gradient_form
from .shifts import shifts_of
from .to_graph import graph_of

__all__ = ["Trees", "gradient_form", "in_equal_form", "shifts_of", "trees_of"]


def in_equal_form(
    graph: Graph,
    *,
    fast_math: bool = False,
    seeds: Collection[str] = (),
    is_last: bool = True,
    written: Mapping[str, algebra.Node] | None = None,
) -> Graph:
    """Return a graph with the same inputs and outputs that computes equal values better.

    Equal means for every value: NaN, infinities and the signs of zeros stay what they were.

    Args:
        graph: formulas, as they were written or differentiated.
        fast_math: let go of what NaN, infinities and signed zeros would be.
        seeds: inputs that are gradients of outputs: what is computed of them is a gradient.
        is_last: nothing is rewritten behind it: polynomials and sigmoids are taken apart.
        written: outputs as they were written, over the graph's inputs and attributes.
    """
    trees = trees_of(graph, written)
    known: dict[algebra.Node, algebra.Node] = {}

    def improved(tree: algebra.Node) -> algebra.Node:
        if fast_math:
            tree = algebra.simplify(tree)
        tree = algebra.stabilise(tree, fast_math=fast_math)
        return algebra.stabilise(gradient_form(tree, seeds, known)) if seeds else tree

    outputs = {name: improved(tree) for name, tree in trees.outputs.items()}
    return graph_of(graph, Trees(outputs, trees.calls, trees.leaves), is_last=is_last)
