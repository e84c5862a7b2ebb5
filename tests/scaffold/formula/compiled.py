"""What the compiler makes of a formula, executed in float32: every operator correctly rounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opkit import compiler


def compiled(
    formula: str, *, fast_math: bool = False, attributes: tuple[str, ...] = (), **inputs: Any
) -> compiler.Graph:
    """Return the operators that a kernel of a formula over float32 inputs computes."""
    specs = [compiler.TensorSpec(name, np.shape(array)) for name, array in inputs.items()]
    rows = [compiler.Attribute(name) for name in attributes]
    graph = compiler.formula_graph(
        "op", specs, [compiler.FormulaOutput("y", formula, "float32")], rows
    )
    graph = compiler.in_equal_form(graph, fast_math=fast_math)
    return compiler.simplify(compiler.expand(graph, fractions_only=True))


def computed(graph: compiler.Graph, inputs: Mapping[str, Any], **attributes: float) -> Any:
    """Return a graph's first output, each operator's result rounded to float32."""
    found = {name: np.asarray(array, np.float32) for name, array in inputs.items()}
    for node in graph.nodes:
        if node.operator == "attribute":
            found[node.output.name] = np.float32(attributes[str(node.settings["name"])])
            continue
        given = [found[name] for name in node.inputs]
        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in given]
        with np.errstate(all="ignore"):
            value = compiler.OPERATORS[node.operator].reference(*wide, **node.settings)
            is_single = node.output.dtype == "float32"
            found[node.output.name] = np.asarray(value, np.float32 if is_single else None)
    return found[graph.outputs[0][1]]


def compiled_gradients(formula: str, **inputs: Any) -> list[compiler.Graph]:
    """Return for each input the operators that compute its gradient of what `grad_y` comes for."""
    given = {"grad_y": next(iter(inputs.values())), **inputs}
    return [compiled(f"gradient({formula}, grad_y, {name})", **given) for name in inputs]
