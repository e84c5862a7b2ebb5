"""The reference of compiled operators: their formulas, which NumPy evaluates operator by
operator."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence

from opkit import compiler
from opkit.scaffold.formula import NUMBERS, formula_graph_of
from opkit.schema import OpSpec, axis_names, free_name

from .gradients import program_backward
from .lists import case_axes_of
from .variants import reduces

__all__ = ["PROGRAM_GOLDEN_HEADER", "program_golden"]

PROGRAM_GOLDEN_HEADER = '''"""References: the prototype's formulas, evaluated in NumPy float64."""

from __future__ import annotations
'''


def program_golden(specs: Sequence[OpSpec]) -> str:
    """Return golden.py's functions for compiled operators; nothing where there is none."""
    wanted: dict[str, OpSpec] = {spec.name: spec for spec in specs if spec.is_program}
    for spec in list(wanted.values()):
        derived = program_backward(spec)
        if derived is not None and all(derived.name != other.name for other in specs):
            wanted[derived.name] = derived
    return "".join(f"\n\n{_function(spec)}" for spec in wanted.values())


def _function(spec: OpSpec) -> str:
    names = [tensor.name for tensor in spec.inputs]
    attributes = [
        attr.name if attr.default is None else f"{attr.name}={attr.default!r}"
        for attr in sorted(spec.attrs, key=lambda attr: attr.default is not None)
    ]
    parameters = ", ".join([*names, *(["*", *attributes] if attributes else [])])
    taken = {*names, *(attr.name for attr in spec.attrs)}
    evaluate = free_name("evaluate_formulas", taken)
    renamed = f" as {evaluate}" if evaluate != "evaluate_formulas" else ""
    formulas = [f"{json.dumps(t.name)}: {json.dumps(t.formula)}" for t in spec.outputs]
    arrays = [f'"{name}": {name}' for name in names]
    given = [f'"{a.name}": {a.name}' for a in spec.attrs if a.type in NUMBERS]
    whole = {
        tensor.name: tensor.dtypes[0].name
        for tensor in (*spec.inputs, *spec.outputs)
        if len(set(tensor.dtypes)) == 1 and "float" not in tensor.dtypes[0].name
    }
    axes = [f'"{tensor.name}": {tensor.axes!r}' for tensor in spec.inputs]
    lists = [tensor.name for tensor in (*spec.inputs, *spec.outputs) if tensor.is_list]
    case_axes = [f'"{tensor.name}": {case_axes_of(spec, tensor)!r}' for tensor in spec.inputs]
    least = ", least=1" if reduces(spec) else ""
    graph = compiler.expand(formula_graph_of(spec, 0))
    floors: dict[str, int] = {}
    multiples: dict[str, str] = {}
    for limit in compiler.size_limits(graph):
        if limit.total != 0:
            multiples[str(limit.total)] = str(limit.divisor)
        elif limit.size:
            floors[limit.size] = max(floors.get(limit.size, 0), limit.least)
    least += f", sizes={json.dumps(floors)}" if floors else ""
    squares = _squares(spec, graph)
    least += f", squares={squares!r}" if squares else ""
    least += f", multiples={json.dumps(multiples)}" if multiples else ""
    return "\n".join(
        [
            f"def {spec.name}({parameters}):",
            '    """Return the outputs for inputs in float64, or int64 for whole numbers."""',
            f"    from opkit.compiler import evaluate_formulas{renamed}",
            "",
            f"    return {evaluate}(",
            f"        {{{', '.join(formulas)}}},",
            f"        {{{', '.join(arrays)}}},",
            f"        {{{', '.join(given)}}},",
            f"        {json.dumps(whole)},",
            *([f"        {{{', '.join(axes)}}},"] if lists or _needs_axes(spec, graph) else []),
            *([f"        lists={json.dumps(lists)},"] if lists else []),
            *(["        fast_math=True,"] if spec.fast_math else []),
            "    )",
            "",
            "",
            f"def {spec.name}_input_shapes(shape):",
            '    """Return the inputs\' shapes, of which the main shape has the named sizes."""',
            "    from opkit.compiler import shapes_at",
            "",
            f"    return shapes_at({{{', '.join(case_axes)}}}, shape{least})",
            "",
            *_limits(spec, graph),
        ]
    )


def _squares(spec: OpSpec, graph: compiler.Graph) -> list[tuple[str, ...]]:
    """Return the named axes of outputs that have a name twice, as all pairs of N elements do."""
    names = {axis for tensor in spec.inputs for axis in tensor.axes or ()}
    shapes = (graph.tensors[name].shape for _, name in graph.outputs)
    rows = [tuple(str(extent) for extent in shape if str(extent) in names) for shape in shapes]
    return list(dict.fromkeys(row for row in rows if len(set(row)) < len(row)))


def _needs_axes(spec: OpSpec, graph: compiler.Graph) -> bool:
    """Return whether the names of axes say more than their lengths: a formula says one, or a value
    that lacks one stands beside an input that does."""
    ranks = {len(tensor.shape) for tensor in graph.inputs if tensor.shape}
    kinds = {compiler.OPERATORS[node.operator].kind for node in graph.nodes}
    if len(ranks) > 1 and kinds & {"reduction", "index", "line"}:
        return True
    axes = [axis for tensor in spec.inputs for axis in tensor.axes or ()]
    names = {name for axis in axes for name in axis_names(axis)}
    return any(
        isinstance(node, ast.Name) and node.id in names
        for tensor in spec.outputs
        for node in ast.walk(ast.parse((tensor.formula or "0").strip(), mode="eval"))
    )


def _limits(spec: OpSpec, graph: compiler.Graph) -> list[str]:
    """Return the function that says how many places there are for inputs that say places."""
    limits = compiler.index_limits(graph)
    places: dict[str, str] = {}
    for tensor in graph.inputs:
        for axis, extent in enumerate(tensor.shape):
            places.setdefault(str(extent), f'shapes["{tensor.name}"][{axis}]')
    # Of "..." a shape has as many axes as it likes; other sizes are found from the end.
    if any("..." in (tensor.axes or ()) for tensor in spec.inputs):
        places = {
            str(axis): f'shapes["{tensor.name}"][{at - len(tensor.axes or ())}]'
            for tensor in spec.inputs
            for at, axis in enumerate(tensor.axes or ())
        }
    rows = {
        name: str(extent) if isinstance(extent, int) else places.get(str(extent))
        for name, extent in limits.items()
    }
    known = [f'"{name}": {text}' for name, text in rows.items() if text is not None]
    if not known:
        return []
    return [
        "",
        f"def {spec.name}_input_limits(shape):",
        '    """Return how many places there are for the inputs that say places."""',
        f"    shapes = {spec.name}_input_shapes(shape)",
        f"    return {{{', '.join(known)}}}",
        "",
    ]
