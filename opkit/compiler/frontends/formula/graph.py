"""Formulas as a front end: the maths of an operator's outputs, as text, to a graph.

A formula is one Python expression over inputs, attributes, named sizes, numbers, `pi` and `e`; it
is read, never run. Names that are called are operators of the table. An axis that a reduction takes
away stays, of length 1, until the output is written, so that `x - mean(x, axis=0)` needs no
`keepdims`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir import Attribute, Graph, GraphError, Location
from ...tracing import GraphBuilder, TensorSpec
from .operations import Given
from .reader import Reader

__all__ = ["FormulaOutput", "formula_graph"]

_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf}


@dataclass(frozen=True)
class FormulaOutput:
    """One output of an operator."""

    name: str
    text: str
    dtype: str = ""
    """That it is written in; that of its value where empty."""


def formula_graph(
    name: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[FormulaOutput],
    attributes: Sequence[Attribute] = (),
    *,
    sizes: Mapping[str, int] | None = None,
    narrowed: Collection[str] = (),
) -> Graph:
    """Return the graph of an operator's formulas.

    Args:
        sizes: what else formulas may name, beside the named sizes of the inputs.
        narrowed: inputs of int64 that are taken as int32, which kernels compute in.

    Raises:
        GraphError: a formula is wrong; the message has the column and the text there.
    """
    formulas = _Formulas(name, inputs, outputs, attributes, sizes, narrowed, is_whole=False)
    try:
        return formulas.graph()
    except GraphError as err:
        if not formulas.divides:
            raise
        # Parts that only fit where sizes are multiples of what they are divided by are parts of
        # such sizes.
        inputs = [_undivided(spec) for spec in inputs]
        formulas = _Formulas(name, inputs, outputs, attributes, sizes, narrowed, is_whole=True)
        try:
            return formulas.graph()
        except GraphError:
            raise err from None


class _Formulas:
    """All formulas of an operator, read once."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[FormulaOutput],
        attributes: Sequence[Attribute],
        sizes: Mapping[str, int] | None,
        narrowed: Collection[str],
        *,
        is_whole: bool,
    ) -> None:
        self.outputs = outputs
        self.divides = False
        self.builder = builder = GraphBuilder(name)
        named: dict[str, Any] = dict(sizes or {})
        for spec in inputs:
            for extent in spec.shape:
                if not isinstance(extent, int):
                    named |= {str(symbol): symbol for symbol in extent.free_symbols}
        known: dict[str, Any] = dict(_CONSTANTS)
        known |= {size: builder.extent(value) for size, value in named.items()}
        known |= {spec.name: builder.input(spec.name, spec.shape, spec.dtype) for spec in inputs}
        known |= {name: known[name].astype("int32") for name in narrowed}
        inputs = [replace(s, dtype="int32") if s.name in narrowed else s for s in inputs]
        known |= {a.name: builder.attribute(a.name, a.kind, a.default) for a in attributes}
        self.given = Given(builder, known, inputs, attributes, named, is_whole)

    def graph(self) -> Graph:
        """Return the graph; `divides` says whether a formula divides a size that has a name."""
        for output in self.outputs:
            reader = Reader(self.given, output.text, self.inner_graph)
            with self.builder.at(Location("formula", 1, output.name)):
                try:
                    value = reader.output()
                finally:
                    self.divides |= reader.divides
                if output.dtype and value.dtype != output.dtype:
                    value = value.astype(output.dtype)
                self.builder.output(output.name, value)
        return self.builder.graph()

    def inner_graph(self, name: str, text: str) -> Graph:
        """Return the graph of a formula that stands inside another."""
        given, wanted = self.given, [FormulaOutput(name, text)]
        return formula_graph("inner", given.inputs, wanted, given.attributes, sizes=given.sizes)


def _undivided(spec: TensorSpec) -> TensorSpec:
    """Return an input whose lengths that are quotients are such without a rest."""
    import sympy

    shape = tuple(
        extent
        if isinstance(extent, int)
        else extent.replace(sympy.floor, lambda inner: sympy.simplify(inner))
        for extent in spec.shape
    )
    return replace(spec, shape=shape)
