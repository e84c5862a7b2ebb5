"""Fused element-wise and reducing nodes as loops in C++."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Dimension, GraphError, Node, Tensor, product
from ...passes import FusedGraph, LoopWriter, domain_of
from ..text import Text, identifier, special_number

__all__ = ["HostFunction", "storage_type", "write_loops"]

_STORAGE = {
    **{"float16": "Half", "bfloat16": "Brain", "float32": "float", "float64": "double"},
    **{"bool": "bool", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t"},
    **{"uint16": "uint16_t", "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t"},
    "uint64": "uint64_t",
}
_COMPUTED = {"float16": "float", "bfloat16": "float"}
_COMPUTED_AS = {dtype: _STORAGE[dtype] for dtype in _COMPUTED}
_PART = 512
"""Elements of an axis whose sum is float; sums of parts are double."""
_INFIX = {
    **{"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "=="},
    **{"not_equal": "!=", "logical_and": "&&", "logical_or": "||"},
    **{"bitwise_and": "&", "bitwise_or": "|"},
}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_FUNCTIONS = {
    **{"exp": "Exp", "log": "std::log", "sqrt": "std::sqrt", "floor": "std::floor"},
    **{"ceil": "std::ceil", "round": "std::nearbyint", "trunc": "std::trunc", "abs": "std::abs"},
}
_EXTREMES = {"maximum": "Larger", "minimum": "Smaller"}


@dataclass(frozen=True)
class HostFunction:
    """One function of the file, and what it is called with."""

    name: str
    text: str
    tensors: tuple[str, ...]
    sizes: tuple[Dimension, ...]
    scalars: tuple[str, ...]


def storage_type(tensor: Tensor) -> str:
    """Return the C++ type of an array's elements."""
    return _STORAGE[tensor.dtype]


def write_loops(
    name: str, fused: FusedGraph, nodes: Sequence[Node], outputs: Sequence[str]
) -> HostFunction:
    """Return the function that computes `outputs` by these nodes.

    Raises:
        GraphError: an operator has no C++; at the user's line.
    """
    return _Loops(name, fused, nodes, outputs).write()


class _Loops(LoopWriter):
    def __init__(
        self, name: str, fused: FusedGraph, nodes: Sequence[Node], outputs: Sequence[str]
    ) -> None:
        super().__init__(fused, nodes, outputs, domain_of(fused.graph, nodes))
        self.name = name
        self.known: dict[str, str] = {}
        """Variables of the loop under way, and of the ones around it."""
        self.lasting: dict[str, str] = {}
        self.around: list[str] = []
        self.within: list[str] = []

    def stem_of(self, tensor: str) -> str:
        return identifier(tensor)

    def axis(self, axis: int) -> str:
        return f"a{axis}"

    def size_name(self, index: int) -> str:
        return f"sizes[{index}]"

    def write(self) -> HostFunction:
        body = self.passes()
        out = Text()
        out(
            f'extern "C" void {self.name}(void* const* tensors, const int64_t* sizes,'
            " const double* scalars, int threads)"
        )
        out("{")
        for index, (tensor, stem) in enumerate(self.tensors.items()):
            kind = storage_type(self.graph.tensors[tensor])
            const = "" if tensor in self.outputs else "const "
            out(f"{const}{kind}* const {stem} = static_cast<{const}{kind}*>(tensors[{index}]);")
        if not self.scalars:
            out("(void)scalars;")
        axes = [axis for axis in range(len(self.domain.extents)) if axis != self.inner]
        total = self.size(product(self.domain.extents[axis] for axis in axes))
        inner = self.size(self.domain.extents[self.inner])
        out(f"Parallel({total}, {inner}, threads, [&](int64_t first, int64_t last) {{")
        out("for (int64_t at = first; at < last; ++at) {")
        out("int64_t rest = at;")
        for axis in reversed(axes):
            extent = self.size(self.domain.extents[axis])
            out(f"const int64_t a{axis} = rest % {extent};")
            out(f"rest /= {extent};")
            out(f"(void)a{axis};")
        out.all(body)
        out("}")
        out("});")
        out("}")
        return HostFunction(
            self.name, out.render(), tuple(self.tensors), tuple(self.sizes), tuple(self.scalars)
        )

    # Passes over the inner axis: one for each generation of reductions, one for the results

    def passes(self) -> list[str]:
        lines: list[str] = []
        for folds in [*self.passes_of_reductions(), []]:
            self.known, self.around, self.within = dict(self.lasting), [], []
            for node in folds:
                self.fold(node)
            after: list[str] = []
            if not folds:
                for name in self.outputs:
                    value = self.value(name)
                    target = f"{self.stem(name)}[{self.index(name)}]"
                    lines_of = self.within if self.is_inner(name) else after
                    lines_of.append(f"Store({target}, {value});")
            lines += self.around
            if self.within:
                extent = self.size(self.domain.extents[self.inner])
                axis = f"a{self.inner}"
                if folds:
                    lines += self.folding(folds, axis, extent)
                else:
                    lines.append(f"for (int64_t {axis} = 0; {axis} < {extent}; ++{axis}) {{")
                    lines += [*self.within, "}"]
            lines += after
            for node in folds:
                kind = self.kind(node.output.name)
                total = self.variable("r", node.output.name)
                lines.append(f"const {kind} {total} = static_cast<{kind}>({total}Sum);")
                self.lasting[node.output.name] = total
        return lines

    def folding(self, folds: Sequence[Node], axis: str, extent: str) -> list[str]:
        """Return the loop of a pass that folds: the compiler may take many elements at once, in an
        order of its own, and sums of fractions are float for a part of the axis only."""
        kinds = {"sum": "+", "max": "larger", "min": "smaller"}
        parts = [self.variable("r", node.output.name) for node in folds if self.in_parts(node)]
        totals = [f"reduction({kinds[node.operator]} : {self.total(node)})" for node in folds]
        return [
            f"for (int64_t begin = 0; begin < {extent}; begin += {_PART}) {{",
            *(f"float {part}Part = 0;" for part in parts),
            f"const int64_t end = std::min<int64_t>(begin + {_PART}, {extent});",
            f"#pragma omp simd {' '.join(totals)}",
            f"for (int64_t {axis} = begin; {axis} < end; ++{axis}) {{",
            *self.within,
            "}",
            *(f"{part}Sum += {part}Part;" for part in parts),
            "}",
        ]

    def in_parts(self, node: Node) -> bool:
        return node.operator == "sum" and self.kind(node.inputs[0]) == "float"

    def total(self, node: Node) -> str:
        """Return the variable that a fold's elements go to."""
        suffix = "Part" if self.in_parts(node) else "Sum"
        return f"{self.variable('r', node.output.name)}{suffix}"

    def fold(self, node: Node) -> None:
        (source,) = node.inputs
        value = self.value(source)
        total = self.variable("r", node.output.name)
        kind = self.kind(source)
        if node.operator == "sum":
            wide = "double" if kind in ("float", "double") else "int64_t"
            self.around.append(f"{wide} {total}Sum = 0;")
            self.within.append(f"{self.total(node)} += {value};")
            return
        limit = f"std::numeric_limits<{kind}>::"
        start = f"-{limit}infinity()" if kind in ("float", "double") else f"{limit}lowest()"
        function = "Larger"
        if node.operator == "min":
            start = f"{limit}infinity()" if kind in ("float", "double") else f"{limit}max()"
            function = "Smaller"
        self.around.append(f"{kind} {total}Sum = {start};")
        self.within.append(f"{total}Sum = {function}({total}Sum, {value});")

    # Values

    def value(self, name: str) -> str:
        """Return a variable that holds a tensor's element, computed where it does not vary."""
        if name in self.uniform:
            return self.number(name)
        if name in self.known:
            return self.known[name]
        node = self.nodes.get(name)
        if node is None:
            text = f"Load({self.stem(name)}[{self.index(name)}])"
        else:
            text = self.expression(node, [self.value(each) for each in node.inputs])
        variable = self.variable("v", name)
        kind = self.kind(name)
        place = f"  // {node.location}" if node is not None and node.location else ""
        if kind not in ("float", "double", "bool"):
            text = f"static_cast<{kind}>({text})"
        line = f"const {kind} {variable} = {text};{place}"
        if self.is_inner(name):
            self.within.append(line)
        else:
            self.around.append(line)
            self.lasting[name] = variable
        self.known[name] = variable
        return variable

    def expression(self, node: Node, values: Sequence[str]) -> str:
        name = node.operator
        kind = self.kind(node.output.name)
        same = [
            value if self.kind(each) == kind else f"static_cast<{kind}>({value})"
            for each, value in zip(node.inputs, values, strict=True)
        ]
        if name in _ARITHMETIC:
            if kind in ("float", "double"):
                return f"{same[0]} {_ARITHMETIC[name]} {same[1]}"
            # Whole numbers wrap.
            return (
                f"static_cast<uint64_t>({values[0]}) {_ARITHMETIC[name]}"
                f" static_cast<uint64_t>({values[1]})"
            )
        if name == "div":
            return f"{same[0]} / {same[1]}"
        if name in _INFIX:
            return f"{values[0]} {_INFIX[name]} {values[1]}"
        if name in _FUNCTIONS:
            return f"{_FUNCTIONS[name]}({', '.join(same)})"
        if name in _EXTREMES:
            # Literals are of type int.
            return f"{_EXTREMES[name]}<{kind}>({', '.join(same)})"
        simple = {
            "neg": "-{0}",
            "logical_not": "!{0}",
            "bitwise_not": "!{0}" if kind == "bool" else "~{0}",
            "broadcast_to": "{0}",
        }
        if name in simple:
            return simple[name].format(*values)
        if name == "where":
            return (
                f"{values[0]} ? static_cast<{kind}>({values[1]}) : static_cast<{kind}>({values[2]})"
            )
        if name == "cast":
            source = self.kind(node.inputs[0])
            if kind == "bool":
                return f"{values[0]} != 0"
            if (stored := _COMPUTED_AS.get(node.output.dtype)) is not None:
                return f"Rounded<{stored}>({values[0]})"
            is_narrowed = source in ("float", "double") and kind not in ("float", "double")
            return f"Narrowed<{kind}>({values[0]})" if is_narrowed else values[0]
        raise GraphError(f"{name} has no C++", location=node.location)

    def number(self, name: str) -> str:
        node = self.graph.producers[name]
        if node.operator == "constant":
            number = node.settings["value"]
            if isinstance(number, bool | int) and self.kind(name) not in ("float", "double"):
                return str(int(number))
            value = float(number)
            suffix = "" if self.kind(name) == "double" else "f"
            return special_number(value) or f"{value!r}{suffix}"
        if name not in self.scalars:
            self.scalars.append(name)
        return f"static_cast<{self.kind(name)}>(scalars[{self.scalars.index(name)}])"

    # Names

    def kind(self, name: str) -> str:
        dtype = self.graph.tensors[name].dtype
        return _COMPUTED.get(dtype, _STORAGE[dtype])
