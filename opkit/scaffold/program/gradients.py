"""The backward operator of a compiled operator, in the same language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from opkit import compiler
from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.errors import UsageError
from opkit.scaffold.formula import (
    UnsupportedGradient,
    declined_gradients,
    formula_graph_of,
    leading_size,
)
from opkit.schema import OpSpec, TensorSpec, axis_names

from .shapes import with_shapes
from .variants import variants_of

__all__ = ["program_backward", "unsupported_program_gradients"]

_FLOATING = frozenset({"float16", "float32", "bfloat16"})


def program_backward(spec: OpSpec) -> OpSpec | None:
    """Return the operator that computes the gradients: `grad_<output>` for each output, then the
    inputs, to `grad_<input>`, each in its input's own shape, which a rule says.

    None where the prototype names another or wants none, and where there is none;
    `unsupported_program_gradients` says why.

    Raises:
        SpecError: a formula is wrong.
    """
    if spec.gradient is not None:
        return None
    found = _derived(spec)
    return found if isinstance(found, OpSpec) else None


def unsupported_program_gradients(spec: OpSpec) -> tuple[UnsupportedGradient, ...]:
    """Return the inputs that `program_backward` gives no gradient for, each with the reason."""
    declined = declined_gradients(spec)
    if declined is not None:
        return declined
    found = _derived(spec)
    if not isinstance(found, OpSpec):
        return tuple(UnsupportedGradient(t.name, found) for t in spec.inputs)
    given = {tensor.name for tensor in found.outputs}
    missing = [t for t in spec.inputs if f"grad_{t.name}" not in given]
    return tuple(
        UnsupportedGradient(
            tensor.name,
            "it is zero, because no formula depends on it differentiably"
            if tensor.name in _inputs(spec)
            else "it is not a floating-point tensor",
            is_zero=tensor.name in _inputs(spec),
        )
        for tensor in missing
    )


def _variants(spec: OpSpec) -> tuple[int, ...]:
    """Return the combinations of data types in which every differentiable output is of floats."""
    outputs = _outputs(spec)
    return tuple(
        variant
        for variant in range(spec.variant_count)
        if outputs and all(one.dtypes[variant].name in _FLOATING for one in outputs)
    )


def _outputs(spec: OpSpec) -> list[TensorSpec]:
    """Return the outputs that have a gradient: whole numbers, such as places, have none."""
    return [one for one in spec.outputs if any(d.name in _FLOATING for d in one.dtypes)]


def _inputs(spec: OpSpec) -> list[str]:
    """Return the inputs of floats."""
    variants = _variants(spec)
    return [
        t.name
        for t in spec.inputs
        if variants and all(t.dtypes[v].name in _FLOATING for v in variants)
    ]


# A project's files, reference and bindings each ask for it, and deriving compiles its kernels.
@lru_cache(maxsize=64)
def _derived(spec: OpSpec) -> OpSpec | str:
    """Return the backward operator, as `with_shapes` returns it, or why there is none."""
    variants, wanted = _variants(spec), _inputs(spec)
    if not wanted:
        return "no input and output are floats"
    graph = formula_graph_of(spec, variants[0])
    try:
        gradients = compiler.gradient(graph, wanted)
    except UsageError as err:
        return f"it cannot be derived: {err.message}"
    axes = {name: _axes(spec, graph.tensors[tensor].shape) for name, tensor in graph.outputs}
    unnamed = [name for name, each in axes.items() if each is None]
    if unnamed:
        return f"the shape of {unnamed[0]} is no list of names and lengths"
    outputs = _outputs(spec)
    seeds = {f"grad_{tensor.name}" for tensor in outputs}
    names = [*seeds, *(t.name for t in spec.inputs), *(f"grad_{name}" for name in wanted)]
    if len(set(names)) < len(names):
        return "the backward operator would have two tensors of one name: rename the inputs"

    def narrow(one: TensorSpec, name: str) -> TensorSpec:
        return replace(
            one,
            name=name,
            dtypes=tuple(one.dtypes[v] for v in variants),
            formats=tuple(one.formats[v] for v in variants),
            formula=None,
            shape=None,
        )

    def text(name: str) -> str:
        return " + ".join(
            f"gradient({' '.join((o.formula or '').split())}, grad_{o.name}, {name})"
            for o in outputs
            if _depends(gradients, f"grad_{name}", {f"grad_{o.name}"})
        )

    by_name = {one.name: one for one in spec.inputs}
    chosen = [name for name in wanted if _depends(gradients, f"grad_{name}", seeds)]
    if not chosen:
        return "the formulas are steps: their gradient is zero"
    derived = OpSpec(
        op=f"{spec.op}Grad",
        name=f"{spec.name}_grad",
        inputs=(
            *(replace(narrow(t, f"grad_{t.name}"), axes=axes[t.name]) for t in outputs),
            *(narrow(t, t.name) for t in spec.inputs),
        ),
        outputs=tuple(
            replace(narrow(by_name[name], f"grad_{name}"), axes=None, formula=text(name))
            for name in chosen
        ),
        attrs=spec.attrs,
        source=spec.source,
        pointer=spec.pointer,
        fast_math=spec.fast_math,
    )
    try:
        # What the chip's kernels cannot do is known when they have been made.
        variants_of(derived, find_chip(DEFAULT_CHIP))
        return with_shapes(derived)
    except UsageError as err:
        return f"the backward operator is none that can be generated: {err.message}"


def _axes(spec: OpSpec, shape: Sequence[object]) -> tuple[str | int, ...] | None:
    """Return an output's shape as axes of an input; None where an extent is computed."""
    leading = leading_size(spec)
    found: list[str | int] = []
    for extent in shape:
        if isinstance(extent, int):
            found.append(extent)
        elif str(extent) == leading and not found:
            found.append("...")
        else:
            text = _size_text(extent)
            if text is None or leading in axis_names(text):
                return None
            found.append(text)
    return tuple(found)


def _size_text(extent: Any) -> str | None:
    """Return a size as an axis of an input says it; None where it cannot."""
    try:
        text = compiler.extent_text(extent, {str(each): str(each) for each in extent.free_symbols})
    except KeyError:
        return None
    # A quotient without a rest is another size than one that is rounded down.
    return text if "floor" in str(extent) else text.replace("//", "/")


def _depends(graph: compiler.Graph, output: str, inputs: set[str]) -> bool:
    """Return whether an output is computed from any of some inputs."""
    reached = set(inputs)
    for node in graph.nodes:
        if reached & set(node.inputs):
            reached.add(node.output.name)
    return dict(graph.outputs)[output] in reached
