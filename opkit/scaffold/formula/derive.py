"""The backward operator, by reverse-mode differentiation of the formulas.

At ties and kinks it does what torch does: relu has 0 at 0; maximum and minimum of equal values give
each half; a value between two bounds, minimum(maximum(u, low), high), has 0 at both, as hardtanh,
relu6 and hardsigmoid do; abs has 0 at 0; elements that share a row's largest value share its
gradient. What a `where` did not choose contributes 0, also where its own slope is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from opkit import compiler
from opkit.algebra import Node, to_formula
from opkit.dtypes import DTYPES
from opkit.errors import SpecError, UsageError
from opkit.schema import OpSpec, TensorSpec

from .checks import EVENTS
from .graphs import formula_graph_of
from .named_axes import over_rows
from .reader import LONGEST_FORMULA, ParsedFormulas, parse

__all__ = ["UnsupportedGradient", "backward", "declined_gradients", "unsupported_gradients"]

_FLOATING = frozenset({"float16", "float32", "bfloat16"})
# A node of a formula's tree is a few characters of its text: beyond this it is not worth writing.
_LARGEST_TREE = LONGEST_FORMULA


@dataclass(frozen=True)
class UnsupportedGradient:
    """An input that the backward operator gives no gradient for."""

    input: str
    reason: str
    is_zero: bool = False
    """The formulas are steps of it, or do not use it: its gradient is zero, so none is right."""


def backward(spec: OpSpec) -> OpSpec | None:
    """Return the operator that computes the gradients, its formulas in the same language.

    Inputs: `grad_<output>` for each output, then the forward inputs. Outputs: `grad_<input>` for
    each floating input that the formulas depend on, in the shape of the broadcast of all inputs;
    where a forward input was broadcast over the leading axes, the caller sums its gradient over
    them.

    Returns None without formulas, where the prototype names another operator or wants none, where
    no input has a gradient, or where no operator can hold it; `unsupported_gradients` says why.

    Raises:
        SpecError: a formula is wrong.
    """
    if not spec.has_formula or spec.gradient is not None:
        return None
    gradients = _gradients(spec)
    return None if isinstance(gradients, str) else _derived(parse(spec), gradients)


def _derived(parsed: ParsedFormulas, gradients: Mapping[str, Node]) -> OpSpec | None:
    spec = parsed.spec
    variants = _floating_variants(spec)
    if not gradients or not variants:
        return None

    def narrow(one: TensorSpec, name: str, formula: str | None = None) -> TensorSpec:
        return TensorSpec(
            name=name,
            param_type=one.param_type,
            dtypes=tuple(one.dtypes[v] for v in variants),
            formats=tuple(one.formats[v] for v in variants),
            formula=formula,
        )

    inputs = [narrow(t, f"grad_{t.name}") for t in spec.outputs]
    inputs += [narrow(t, t.name) for t in spec.inputs]
    by_name = {one.name: one for one in spec.inputs}
    texts = {name: _text(parsed, name, gradient) for name, gradient in gradients.items()}
    return OpSpec(
        op=f"{spec.op}Grad",
        name=f"{spec.name}_grad",
        inputs=tuple(inputs),
        outputs=tuple(narrow(by_name[n], f"grad_{n}", text) for n, text in texts.items()),
        attrs=spec.attrs,
        source=spec.source,
        pointer=spec.pointer,
        fast_math=spec.fast_math,
    )


def declined_gradients(spec: OpSpec) -> tuple[UnsupportedGradient, ...] | None:
    """Return the inputs that no operator is derived for because the prototype says so: none where
    it names the operator, all where it wants no gradient; None where it says neither."""
    if isinstance(spec.gradient, str):
        return ()
    if spec.gradient is False:
        reason = 'the prototype says "gradient": false'
        return tuple(UnsupportedGradient(t.name, reason) for t in spec.inputs)
    return None


def unsupported_gradients(spec: OpSpec) -> tuple[UnsupportedGradient, ...]:
    """Return the inputs that `backward` gives no gradient for, each with the reason."""
    declined = declined_gradients(spec)
    if declined is not None:
        return declined
    if not spec.has_formula:
        reason = "there is no formula and no gradient"
        return tuple(UnsupportedGradient(t.name, reason) for t in spec.inputs)
    gradients = _gradients(spec)
    if isinstance(gradients, str):
        return tuple(UnsupportedGradient(t.name, gradients) for t in spec.inputs)
    variants = _floating_variants(spec)
    found = []
    for one in spec.inputs:
        if not variants or one.dtypes[variants[0]].name not in _FLOATING:
            found.append(UnsupportedGradient(one.name, "it is not a floating-point tensor"))
        elif one.name not in gradients:
            reason = "it is zero, because no formula depends on it differentiably"
            found.append(UnsupportedGradient(one.name, reason, is_zero=True))
    return tuple(found)


def _text(parsed: ParsedFormulas, name: str, gradient: Node) -> str:
    # A gradient that is the same along a row still has the shape of its input.
    shaped = name in parsed.row_inputs or gradient.space == "tile"
    return to_formula(gradient) if shaped else f"like({to_formula(gradient)}, {name})"


def _refusal(parsed: ParsedFormulas, gradients: Mapping[str, Node]) -> str | None:
    """Return why no backward operator can be written, for all inputs alike."""
    spec = parsed.spec
    count = len(spec.inputs) + len(spec.outputs)
    if count > EVENTS:
        return f"the backward operator would have {count} inputs, more than the {EVENTS} possible"
    for name, gradient in gradients.items():
        if gradient.size > _LARGEST_TREE or len(_text(parsed, name, gradient)) > LONGEST_FORMULA:
            return (
                f"the formula of grad_{name} would have more than {LONGEST_FORMULA} characters:"
                ' write the backward operator and name it with "gradient"'
            )
    try:
        derived = _derived(parsed, gradients)
        if derived is not None:
            parse(derived)
    except SpecError as err:
        return f"the backward operator is none that a formula can say: {err.message}"
    return None


def _clash(spec: OpSpec, wanted: Sequence[str]) -> str | None:
    """Return a name that two tensors of the backward operator would have."""
    names = [f"grad_{one.name}" for one in spec.outputs]
    names += [one.name for one in spec.inputs]
    names += [f"grad_{name}" for name in wanted]
    return next((name for name in names if names.count(name) > 1), None)


def _floating_variants(spec: OpSpec) -> tuple[int, ...]:
    return tuple(
        variant
        for variant in range(spec.variant_count)
        if all(one.dtypes[variant].name in _FLOATING for one in spec.outputs)
        and any(one.dtypes[variant].name in _FLOATING for one in spec.inputs)
    )


# A project's files, reference and bindings each ask for it.
@lru_cache(maxsize=64)
def _gradients(spec: OpSpec) -> Mapping[str, Node] | str:
    """Return the gradient of each floating input that the formulas depend on, by the compiler's
    differentiation of the formulas in float32; or why no operator can compute them."""
    parsed, variants = parse(spec), _floating_variants(spec)
    wanted = [
        one.name
        for one in spec.inputs
        if variants and all(one.dtypes[v].name in _FLOATING for v in variants)
    ]
    if not wanted:
        return {}
    clash = _clash(spec, wanted)
    if clash is not None:
        return f'the backward operator would have two tensors called "{clash}": rename the input'
    over = over_rows(spec)
    single = [_single(tensor, variants[0]) for tensor in (*over.spec.inputs, *over.spec.outputs)]
    count = len(spec.inputs)
    inputs, outputs = tuple(single[:count]), tuple(single[count:])
    graph = formula_graph_of(replace(over.spec, inputs=inputs, outputs=outputs), 0)
    try:
        found = compiler.gradient_trees(
            graph, wanted, fast_math=spec.fast_math, written=over.written or None
        )
    except UsageError as err:
        return f"it cannot be derived: {err.message}"
    return _refusal(parsed, found) or found


def _single(tensor: TensorSpec, variant: int) -> TensorSpec:
    """Return a tensor of one data type, float32 where it has fractions."""
    dtype = tensor.dtypes[variant]
    if dtype.name in _FLOATING:
        dtype = next(each for each in DTYPES if each.name == "float32")
    return replace(tensor, dtypes=(dtype,), formats=(tensor.formats[variant],))
