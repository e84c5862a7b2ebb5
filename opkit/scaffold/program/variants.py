"""The kernels of an operator, one set for each combination of data types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from opkit import compiler
from opkit.algebra import Node
from opkit.chips import Chip
from opkit.errors import SpecError, UsageError
from opkit.scaffold.formula import formula_graph_of, spec_error
from opkit.schema import OpSpec

from .lists import has_lists

__all__ = [
    "Step",
    "Variant",
    "reduces",
    "variants_of",
]

_FRACTIONS = frozenset({"float16", "bfloat16", "float32"})
_WIDE = frozenset({"int64", "uint64", "uint32"})


@dataclass(frozen=True)
class Step:
    """One part of the kernel, which computes some tensors."""

    kernels: tuple[compiler.OperatorKernel, ...]
    """The first that fits a launch's shapes does."""
    waits: bool
    """For what cores have computed in the steps before."""


@dataclass(frozen=True)
class Variant:
    """The combinations of data types that share a kernel."""

    combinations: tuple[tuple[str, ...], ...]
    """In each the types of the inputs, then of the outputs."""
    stages: compiler.Stages
    steps: tuple[Step, ...]
    tensors: Mapping[str, str]
    """The operator's tensor behind each of the kernels' addresses."""
    workspace: tuple[compiler.Tensor, ...]
    """What steps leave for those that follow."""

    has_lists: bool = False
    """Which vector cores join and split."""

    def tensor_of(self, name: str) -> compiler.Tensor:
        """Return what the steps have of a tensor of the operator."""
        graph = self.stages.fused.graph
        return graph.tensors[dict(graph.outputs).get(name, name)]

    @property
    def mode(self) -> str:
        """Which cores the kernel runs on: `vector`, `cube`, or `mixed`."""
        kinds = {
            share.kind
            for step in self.steps
            for kernel in step.kernels
            for share in compiler.shares_of_kernel(kernel)
        }
        kinds |= {"vector"} if self.has_lists else set()
        return "mixed" if len(kinds) > 1 else kinds.pop()

    @property
    def uses_object(self) -> bool:
        """Whether a step needs the header of the Matmul object."""
        return any(
            isinstance(kernel, compiler.HostedKernel) and kernel.uses_object
            for step in self.steps
            for kernel in step.kernels
        )


def reduces(spec: OpSpec) -> bool:
    """Return whether a formula takes values of an axis together."""
    graph = compiler.expand(formula_graph_of(spec, 0))
    return any(compiler.OPERATORS[node.operator].kind == "reduction" for node in graph.nodes)


def variants_of(
    spec: OpSpec,
    chip: Chip,
    *,
    choices: compiler.Choices | None = None,
    one_row: frozenset[str] = frozenset(),
    written: Mapping[str, Node] | None = None,
) -> tuple[Variant, ...]:
    """Return the kernels of all combinations of data types: one class over type parameters for
    those that differ in nothing else.

    Args:
        spec: the operator.
        chip: what the kernels are for.
        choices: in place of the compiler's own.
        one_row: inputs of which a launch may give one row for all.
        written: the outputs' formulas, element by element, where they have been read.
    Raises:
        SpecError: a formula is wrong, or takes kernels that a generated operator does not have.
    """
    found: dict[tuple[str, ...], Variant] = {}
    for index in range(spec.variant_count):
        dtypes = tuple(dtype.name for dtype in spec.variant_dtypes(index))
        if dtypes in found:
            continue
        several = spec.variant_count > 1
        name = "_".join([spec.name, *dict.fromkeys(dtypes)]) if several else spec.name
        graph = formula_graph_of(spec, index, name)
        is_fractional = all(tensor.dtypes[index].name in _FRACTIONS for tensor in spec.outputs)
        form = compiler.FormulaForm(spec.fast_math, (written or None) if is_fractional else None)
        try:
            stages = compiler.compile_stages(
                graph, chip, choices, hosted=True, formulas=form, one_row=one_row
            )
        except UsageError as err:
            raise _not_computed(spec, index, err) from err
        found[dtypes] = _variant(spec, dtypes, stages)
    return _joined(spec.name, list(found.values()))


def _joined(name: str, variants: list[Variant]) -> tuple[Variant, ...]:
    """Return variants of which those that differ in types only are one; the first of these has the
    operator's own name."""
    found: list[Variant] = []
    while variants:
        first, *rest = variants
        alike, joined, others = [first], first, []
        for each in rest:
            wider = _common(name if not found else "", [*alike, each])
            if wider is None:
                others.append(each)
            else:
                alike.append(each)
                joined = wider
        found.append(joined)
        variants = others
    return tuple(found)


def _common(name: str, variants: list[Variant]) -> Variant | None:
    """Return one variant for several, or None; without a name it has that of the first."""
    first = variants[0]
    if any(len(each.steps) > 1 or each.workspace for each in variants):
        return None
    own = first.stages.graph.name
    counts = {len(each.steps[0].kernels) for each in variants}
    if len(counts) > 1:
        return None
    kernels = []
    base = 0
    graphs = [each.stages.fused.graph for each in variants]
    for at in range(counts.pop()):
        row = [each.steps[0].kernels[at] for each in variants]
        vector = [each for each in row if isinstance(each, compiler.VectorKernel)]
        if len(vector) < len(variants):
            return None
        title = vector[0].name.replace(own, name or own, 1)
        common = compiler.common_kernel(title, vector, graphs)
        if common is None:
            return None
        base, kernel = common
        kernels.append(kernel)
    combinations = tuple(row for each in variants for row in each.combinations)
    step = replace(first.steps[0], kernels=tuple(kernels))
    return replace(variants[base], combinations=combinations, steps=(step,))


def _variant(spec: OpSpec, dtypes: tuple[str, ...], stages: compiler.Stages) -> Variant:
    fused = stages.fused
    groups = [group for group in fused.groups if group.kind != "view"]
    if not groups:
        raise spec_error(
            spec,
            "/output_desc",
            "the formulas compute nothing",
            "write the program in Python: opkit compile",
        )
    try:
        kernels = [compiler.operator_kernels(stages, group) for group in groups]
    except UsageError as err:
        raise spec_error(spec, "/output_desc", err.message, err.help) from err
    source = {
        group.nodes[0].output.name: group.nodes[0].inputs[0]
        for group in fused.groups
        if group.kind == "view"
    }

    def origin(tensor: str) -> str:
        while tensor in source:
            tensor = source[tensor]
        return tensor

    tensors = {tensor.name: tensor.name for tensor in fused.graph.inputs}
    for name, tensor in fused.graph.outputs:
        if origin(tensor) in tensors:
            raise spec_error(
                spec,
                "/output_desc",
                f'the output "{name}" is the same as "{tensors[origin(tensor)]}"',
                "leave one of them out",
            )
        tensors[origin(tensor)] = name
    workspace: dict[str, compiler.Tensor] = {}
    fresh: set[str] = set()
    steps = []
    for group, each in zip(groups, kernels, strict=True):
        waits = any(origin(name) in fresh for name in fused.inputs_of(group))
        fresh = set() if waits else fresh
        results = fused.results_of(group)
        fresh |= set(results)
        workspace |= {name: fused.graph.tensors[name] for name in results if name not in tensors}
        for kernel in each:
            if isinstance(kernel, compiler.HostedKernel):
                workspace |= {room.name: room for room in kernel.rooms}
                if kernel.first is not None:
                    steps.append(Step((kernel.first,), waits))
                    waits = True
        steps.append(Step(each, waits))
    tensors |= {name: tensors[origin(name)] for name in source if origin(name) in tensors}
    tensors |= {name: origin(name) for name in (*workspace, *source) if name not in tensors}
    return Variant(
        (dtypes,),
        stages,
        tuple(steps),
        tensors,
        tuple(workspace.values()),
        has_lists(spec),
    )


def _not_computed(spec: OpSpec, variant: int, error: UsageError) -> SpecError:
    """Return the error of a program that is not compiled: at the tensor whose type is too wide."""
    for kind, tensors in (("input_desc", spec.inputs), ("output_desc", spec.outputs)):
        for index, tensor in enumerate(tensors):
            dtype = tensor.dtypes[variant].name
            if dtype in _WIDE and f"is {dtype}" in error.message:
                return spec_error(
                    spec,
                    f"/{kind}/{index}/type",
                    f'"{tensor.name}" is {dtype}, which the vector unit does not compute',
                    f'write "int32": places and counts fit it, and {tensor.name}.int() gives it',
                )
    return spec_error(spec, "/output_desc", error.message, error.help)
