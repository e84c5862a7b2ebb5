"""The shapes of an operator's outputs: Python for torch's fake tensors, C++ for InferShape."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Set

from opkit.schema import OpSpec, ShapeOption, ShapeRule, TensorSpec, counted_list, leading_axes

__all__ = [
    "default_rule",
    "infer_shape_source",
    "output_shapes",
    "rule_attributes",
    "shape_helpers",
]


def default_rule(spec: OpSpec, output: TensorSpec) -> ShapeRule | None:
    """Return the rule of an output that has neither formula nor `shape`: the first input's shape.

    None where there is no required input and no list to take it from.
    """
    if output.shape is not None:
        return output.shape
    source = next((t.name for t in spec.inputs if t.param_type != "optional"), None)
    return None if source is None else ShapeRule("same", (source,))


def output_shapes(spec: OpSpec, *, infers_largest: bool = False) -> tuple[str, ...]:
    """Return one Python expression per output, over the inputs `t`, the attributes `a` by name, and
    `_bridge`, opkit's functions for torch.

    The rule is InferShape's, and what tiling refuses is refused: a formula's output has the largest
    input's shape; one that holds a value per row lacks its last axis, or has 1 there with keepdims.
    Without a formula it is what the output's `shape` says. A dynamic output has a list of them.

    Args:
        infers_largest: without formulas, as the kernel's `Layout` says: outputs are as the largest
            input.

    Raises:
        SpecError: a formula is wrong.
    """
    where = {tensor.name: f"t[{index}]" for index, tensor in enumerate(spec.inputs)}
    if not spec.has_formula and infers_largest:
        whole = f"_bridge.elementwise_shape({', '.join(where.values())})"
        return tuple(whole for _ in spec.outputs)
    if not spec.has_formula:
        return tuple(_rule_in_python(spec, output, where) for output in spec.outputs)
    from opkit.scaffold import formula

    parsed = formula.parse(spec)
    full = [where[t.name] for t in spec.inputs if t.name not in parsed.row_inputs]
    if not full:
        return tuple("t[0].shape" for _ in spec.outputs)
    rows = [where[t.name] for t in spec.inputs if t.name in parsed.row_inputs]
    if parsed.kind == "rowwise":
        values = f", [{', '.join(rows)}]" if rows else ""
        reduces = any(output.per_row for output in parsed.outputs)
        whole = f"_bridge.rowwise_shape([{', '.join(full)}]{values}, reduces={reduces})"
    elif len(full) == 1:
        whole = f"{full[0]}.shape"
    else:
        whole = f"_bridge.elementwise_shape({', '.join(full)})"
    return tuple(
        f"_bridge.row_shape({whole}, keepdims={output.keepdims})" if output.per_row else whole
        for output in parsed.outputs
    )


def shape_helpers(spec: OpSpec) -> frozenset[str]:
    """Return which helpers an operator's rules call: `broadcast`, `reduce`, `matmul`, `dims`."""
    if spec.has_formula:
        return frozenset()
    rules = [default_rule(spec, output) for output in spec.outputs]
    kinds = {rule.kind for rule in rules if rule is not None and _needs_help(rule)}
    if "matmul" in kinds:
        kinds.add("broadcast")
    return frozenset(kinds - {"same"})


def _needs_help(rule: ShapeRule) -> bool:
    return any("[" in dim for dim in rule.dims) if rule.kind == "dims" else bool(rule.tensors)


def _rule_in_python(spec: OpSpec, output: TensorSpec, where: Mapping[str, str]) -> str:
    lists = {tensor.name for tensor in spec.inputs if tensor.param_type == "dynamic"}
    if output.param_type == "dynamic":
        source = next((t.name for t in spec.inputs if t.name in lists), None)
        return f"[each.shape for each in {where[source]}]" if source else "(1,)"
    rule = default_rule(spec, output)
    if rule is None:
        return "(1,)"
    tensors = [f"{where[name]}[0]" if name in lists else where[name] for name in rule.tensors]
    if rule.kind == "same":
        return f"{tensors[0]}.shape"
    attributes = {attr.name: f'a["{attr.name}"]' for attr in spec.attrs}
    if rule.kind == "dims":
        by_name = dict(zip(rule.tensors, tensors, strict=True))
        leading = leading_axes(rule.dims[0]) if rule.dims else None
        dims = [] if leading is None else [f"*{by_name[leading[0]]}.shape[:-{leading[1]}]"]
        dims += [
            _dimension(
                dim,
                axis_of=lambda name, axis: f"{by_name[name]}.shape[{axis}]",
                name_of=lambda name: attributes[name],
                count_of=lambda name: f"len({where[name]})",
                divide="//",
            )
            for dim in rule.dims[leading is not None :]
        ]
        return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"
    options = "".join(
        f", {key}={attributes[value] if isinstance(value, str) else repr(value)}"
        for key, value in rule.options.items()
    )
    return f"_bridge.{rule.kind}_shape({', '.join(tensors)}{options})"


def infer_shape_source(
    spec: OpSpec, output: TensorSpec, stems: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the C++ statements of InferShape that set one output's shape, without a formula.

    Args:
        stems: what the C++ variables of a tensor or attribute start with, by its name: the shape of
            input `x` is behind the pointer `<stem>Shape`, an attribute is `<stem>`.
    """
    target = f"{stems[output.name]}Shape"
    rule = default_rule(spec, output)
    if rule is None:
        return (
            "// There is no input to take a shape from: one element until this is written.",
            f"*{target} = gert::Shape({{1}});",
        )
    sources = [f"*{stems[name]}Shape" for name in rule.tensors]
    if rule.kind == "same":
        return (f"*{target} = {sources[0]};",)
    if rule.kind == "broadcast":
        joined = ", ".join(source.removeprefix("*") for source in sources)
        return _checked(f"Broadcast({{{joined}}}, {target})")
    if rule.kind == "dims":
        by_name = dict(zip(rule.tensors, sources, strict=True))
        inputs = [tensor.name for tensor in spec.inputs]
        leading = leading_axes(rule.dims[0]) if rule.dims else None
        dims = [
            _dimension(
                dim,
                axis_of=lambda name, axis: f"Dim({by_name[name]}, {axis})",
                name_of=lambda name: stems[name],
                count_of=lambda name: (
                    "static_cast<int64_t>(context->GetIrInputInstanceInfo("
                    f"{inputs.index(name)})->GetInstanceNum())"
                ),
                divide="/",
            )
            for dim in rule.dims[leading is not None :]
        ]
        if leading is not None:
            source, left = by_name[leading[0]].removeprefix("*"), leading[1]
            return (
                f"if ({source}->GetDimNum() < {left}) {{",
                "    return GRAPH_FAILED;",
                "}",
                f"*{target} = *{source};",
                f"{target}->SetDimNum({source}->GetDimNum() - {left});",
                *(f"{target}->AppendDim({dim});" for dim in dims),
            )
        return (f"*{target} = gert::Shape({{{', '.join(dims)}}});",)
    whole = {attr.name for attr in spec.attrs if attr.type == "int"}
    options = ", ".join(_in_cpp(value, stems, whole) for value in rule.options.values())
    function = {"reduce": "Reduce", "matmul": "MultiplyShapes"}[rule.kind]
    return _checked(f"{function}({', '.join(sources)}, {options}, {target})")


def _checked(call: str) -> tuple[str, ...]:
    return (f"if (!{call}) {{", "    return GRAPH_FAILED;", "}")


def rule_attributes(spec: OpSpec) -> tuple[str, ...]:
    """Return the attributes that an operator's rules read, each once."""
    names = {attr.name for attr in spec.attrs}
    found: dict[str, None] = {}
    for output in spec.outputs:
        if output.shape is None:
            continue
        options = [value for value in output.shape.options.values() if isinstance(value, str)]
        for text in (*options, *output.shape.dims):
            for node in ast.walk(ast.parse(text, mode="eval")):
                if isinstance(node, ast.Name) and node.id in names:
                    found.setdefault(node.id)
    return tuple(found)


def _in_cpp(value: ShapeOption, stems: Mapping[str, str], whole: Set[str]) -> str:
    """Return an option as C++; axes are lists there, also one that a whole number holds."""
    if isinstance(value, str):
        return f"{{{stems[value]}}}" if value in whole else stems[value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{{{', '.join(map(str, value))}}}"


def _dimension(
    text: str,
    *,
    axis_of: Callable[[str, int], str],
    name_of: Callable[[str], str],
    count_of: Callable[[str], str],
    divide: str,
) -> str:
    """Return one dimension as source: how an axis, a name, the length of a list and a division are
    written is given."""

    def write(node: ast.expr) -> str:
        if isinstance(node, ast.BinOp):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: divide}[type(node.op)]
            return f"({write(node.left)} {sign} {write(node.right)})"
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            return axis_of(node.value.id, int(ast.literal_eval(node.slice)))
        counted = counted_list(node)
        if counted is not None:
            return count_of(counted)
        return name_of(node.id) if isinstance(node, ast.Name) else ast.unparse(node)

    return write(ast.parse(text.strip(), mode="eval").body)
