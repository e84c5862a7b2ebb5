"""The backward operator, by reverse-mode differentiation of the formulas.

At ties and kinks it does what torch does: relu has 0 at 0; maximum and minimum of equal values give
each half; a value between two bounds, minimum(maximum(u, low), high), has 0 at both, as hardtanh,
relu6 and hardsigmoid do; abs has 0 at 0; elements that share a row's largest value share its
gradient. What a `where` did not choose contributes 0, also where its own slope is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opkit.algebra import ZERO, Node, add, call, simplify, stabilise, tensor, to_formula
from opkit.errors import SpecError
from opkit.schema import OpSpec, TensorSpec

from .adjoint import gradients_of
from .checks import EVENTS
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
    parsed = parse(spec)
    gradients = _gradients(parsed)
    return None if _refusal(parsed, gradients) is not None else _derived(parsed, gradients)


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
    parsed = parse(spec)
    gradients = _gradients(parsed)
    refused = _refusal(parsed, gradients)
    if refused is not None:
        return tuple(UnsupportedGradient(t.name, refused) for t in spec.inputs)
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
    clash = _clash(spec, gradients)
    if clash is not None:
        return f'the backward operator would have two tensors called "{clash}": rename the input'
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


def _clash(spec: OpSpec, gradients: Mapping[str, object]) -> str | None:
    """Return a name that two tensors of the backward operator would have."""
    names = [f"grad_{one.name}" for one in spec.outputs]
    names += [one.name for one in spec.inputs]
    names += [f"grad_{name}" for name in gradients]
    return next((name for name in names if names.count(name) > 1), None)


def _floating_variants(spec: OpSpec) -> tuple[int, ...]:
    return tuple(
        variant
        for variant in range(spec.variant_count)
        if all(one.dtypes[variant].name in _FLOATING for one in spec.outputs)
        and any(one.dtypes[variant].name in _FLOATING for one in spec.inputs)
    )


def _gradients(parsed: ParsedFormulas) -> dict[str, Node]:
    """Return the gradient of each floating input that the formulas depend on."""
    spec = parsed.spec
    variants = _floating_variants(spec)
    wanted: dict[str, Node] = {}
    for one in spec.inputs:
        if variants and all(one.dtypes[v].name in _FLOATING for v in variants):
            plain = parsed.inputs[one.name]
            wanted[one.name] = call("row", plain) if one.name in parsed.row_inputs else plain
    pulled: dict[str, list[Node]] = {name: [] for name in wanted}
    for output in parsed.outputs:
        symbol = tensor(f"grad_{output.name}")
        cotangent = call("row", symbol) if output.per_row else symbol
        node = output.expression
        if spec.fast_math:
            node = simplify(node)
        node = stabilise(node, fast_math=True)
        found = gradients_of(node, cotangent, _as_list(wanted))
        for name, gradient in zip(wanted, found, strict=True):
            if gradient != ZERO:
                pulled[name].append(gradient)
    return {name: add(*terms) for name, terms in pulled.items() if terms}


def _as_list(wanted: Mapping[str, Node]) -> Sequence[Node]:
    return list(wanted.values())
