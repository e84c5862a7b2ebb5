"""The reference of an operator that comes without one: torch's function of its name, as a call.

A name serves if torch has a function whose parameters take every required input and every
attribute, each by its name or, for tensors whose names say nothing, in order, and that has as many
results. A gradient that torch has no function for is what autograd gives of the forward operator's
reference, if its inputs' names say which is the gradient and which the forward operator's input.
What does not fit whole is no reference: a wrong one would be worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opkit.errors import SetupError
from opkit.schema import AttrSpec, OpSpec, TensorSpec, snake_case
from opkit.testing.cases import TENSORS, TOGETHER, Together
from opkit.testing.documented import (
    NAMESPACE,
    Documented,
    Kind,
    documented_as,
    reference_package,
)
from opkit.testing.documented import (
    Parameter as Named,
)
from opkit.testing.numbers import is_float
from opkit.testing.references.operator_names import (
    ANOTHER_OPERATOR,
    NEEDS_VALUES,
    NEVER_IN_ORDER,
    PLAIN_NAMES,
    SAME_ARGUMENTS,
    SETS_NO_VALUE,
)
from opkit.testing.references.torch_functions import (
    GRADIENT,
    LIST_PREFIX,
    Form,
    Parameter,
    forms_of,
    functions_of,
)

__all__ = ["Found", "find_by_name"]

_VERSION = re.compile(r"_?v\d+(?=_grad$|_d$|$)|(?<=\w)_d$")
_CUSTOM = re.compile(r"^(custom|my)_(?=\w)|(?<=\w)_custom(?=_grad$|$)")
_INPLACE = re.compile(r"^inplace_|_inplace$")
_GRADIENT_WORDS = frozenset({"grad", "grads", "gradient", "gradients", "dy", "dout"})
# What a forward operator's result is called where a gradient is given it.
_RESULTS = frozenset({"y", "z", "out", "output", "outputs", "result", "activations"})
# What a loss is not differentiated by.
_FIXED = frozenset({"target", "weight", "pos_weight"})
# What ATen numbers so.
_REDUCTIONS = ("none", "mean", "sum")
# Parameters whose default nobody knows where the operator has no such attribute.
_TO_BE_SAID = frozenset({"reduction"})

_ATTRIBUTES = {
    "int": ("int", "number", "ints", "bool"),
    "float": ("number",),
    "bool": ("bool",),
    "string": ("text",),
    "list_int": ("ints",),
    "list_float": ("numbers",),
}
# How a tensor becomes what is no tensor.
_READ = {
    "number": ".item()",
    "int": ".item()",
    "ints": ".tolist()",
    "numbers": ".tolist()",
}


@dataclass(frozen=True)
class Found:
    """A reference that was found by an operator's name."""

    expression: str
    """See `opkit.testing.cases.expressions`."""
    used: frozenset[str]
    """The inputs that it reads; optional ones beside them are left out of calls."""
    read: tuple[tuple[str, str], ...]
    """Inputs whose values it reads as `number`, `int`, `ints` or `numbers`, with which of them."""
    together: tuple[Together, ...] = ()
    """The cases that the operator has, where no general rule says what belongs together."""


def find_by_name(spec: OpSpec) -> Found | None:
    """Return the reference that an operator's name says; None where torch has none, or is not here.

    Source: operator_names.py, `opkit.testing.documented`, and torch's own schemas and signatures.
    """
    try:
        reference_package(TENSORS, wanted_by=spec.op)
    except SetupError:
        return None
    full, name = snake_case(spec.op), _plain_name(spec)
    # What has a name of its own with its version, or in place, is another operator.
    found = _written_out(full, spec) if full != name else None
    if found is None:
        found = _by_plain_name(name, spec)
    if found is None and _CUSTOM.search(name):
        # What students and samples call so is the operator that everybody knows.
        name = _CUSTOM.sub("", name)
        found = _by_plain_name(name, spec)
    together = TOGETHER.get(full, TOGETHER.get(name, ()))
    return replace(found, together=together) if found is not None else None


def _by_plain_name(name: str, spec: OpSpec) -> Found | None:
    torch = reference_package(TENSORS, wanted_by=spec.op)
    gradient = _gradient_input(spec)
    written = _written_out(name, spec)
    # Which of `x` and `y` is the gradient nothing says.
    if written is not None or (name.endswith(GRADIENT) and gradient is None):
        return written
    for path, function in functions_of(torch, name):
        if path.rpartition(".")[2] in NEEDS_VALUES:
            continue
        for form in forms_of(torch, path, function):
            if form.results != len(spec.outputs) or _takes_numbers(form) != _has_numbers(spec):
                continue
            bound = _call(path, form.parameters, spec)
            if bound is not None:
                return bound
    if name.endswith(GRADIENT) and gradient is not None:
        return _by_autograd(name.removesuffix(GRADIENT), gradient, spec)
    return None


def _plain_name(spec: OpSpec) -> str:
    """Return a name without its version, and without what says how it is computed."""
    name = snake_case(spec.op)
    if name in ANOTHER_OPERATOR and any(tensor.name == "mask" for tensor in spec.inputs):
        return name
    for _ in range(2):
        name = _VERSION.sub("", name) or name
    return _INPLACE.sub("", name) or name


def _takes_numbers(form: Form) -> bool:
    """Whether it has a required list of numbers: one for each tensor of a list."""
    return any(p.kind == "numbers" and p.is_required for p in form.parameters)


def _has_numbers(spec: OpSpec) -> bool:
    return any(tensor.name == "scalars" for tensor in spec.inputs)


def _gradient_input(spec: OpSpec) -> str | None:
    """Return the only required input that is called a gradient."""
    found = [
        tensor.name
        for tensor in spec.inputs
        if tensor.param_type != "optional"
        and _GRADIENT_WORDS & set(snake_case(tensor.name).split("_"))
    ]
    return found[0] if len(found) == 1 else None


def _written_out(name: str, spec: OpSpec) -> Found | None:
    """Return the first reference that its documents give which takes every input and attribute."""
    gradient = _gradient_input(spec) if name.endswith(GRADIENT) else None
    for function in documented_as(name):
        if name.endswith(GRADIENT) and function.takes_gradient != (gradient is not None):
            continue
        bound = _bound(function, spec, gradient)
        # Another operator of this name has other inputs, attributes or results.
        if bound is None or function.results not in (None, len(spec.outputs)):
            continue
        inputs = {tensor.name: tensor for tensor in spec.inputs}
        used = frozenset(said for p, said in bound if said in inputs)
        needed = {t.name for t in spec.inputs if t.param_type != "optional"}
        # The output that some gradients are given beside the input changes nothing.
        if needed - used and not name.endswith(GRADIENT):
            continue
        known = {said for _, said in bound} | SETS_NO_VALUE
        if any(attr.name not in known for attr in spec.attrs):
            continue
        if not all(_fits(p.kind, inputs[said]) for p, said in bound if said in inputs):
            continue
        kinds = {Kind.NUMBER: "int", Kind.NUMBERS: "ints"}
        read = [(said, kinds[p.kind]) for p, said in bound if p.kind in kinds and said in inputs]
        return Found(_call_of(function, bound), used, tuple(read))
    return None


def _bound(
    function: Documented, spec: OpSpec, gradient: str | None
) -> list[tuple[Named, str]] | None:
    """Return which input or attribute each parameter is; None where one is nothing."""
    known = {tensor.name for tensor in spec.inputs} | {attr.name for attr in spec.attrs}
    placed = [tensor.name for tensor in spec.inputs if tensor.name != gradient]
    bound = []
    for parameter in function.parameters:
        if parameter.is_named:
            said = parameter.name if parameter.name in known else None
        elif parameter.name == "dy" and gradient is not None:
            said = gradient
        else:
            said = placed.pop(0) if placed else None
        if said is None and parameter.is_required:
            return None
        if said is not None and parameter.is_read:
            bound.append((parameter, said))
    return bound


def _fits(kind: Kind, tensor: TensorSpec) -> bool:
    """Whether an input is a list where the function takes one; conditions are whole numbers."""
    if kind is Kind.WHOLE and is_float(tensor.dtypes[0]):
        return False
    is_list = kind in (Kind.TENSORS, Kind.ARRAYS)
    return kind is Kind.AS_IT_IS or is_list == (tensor.param_type == "dynamic")


def _call_of(function: Documented, bound: Sequence[tuple[Named, str]]) -> str:
    """Return the call as an expression; a parameter that is not read is given None."""
    given = {parameter.name: said for parameter, said in bound}
    arguments = [
        given.get(parameter.name, "None")
        for parameter in function.parameters
        if not parameter.is_named
    ]
    named = [f"{p.name}={said}" for p, said in bound if p.is_named]
    return f"{NAMESPACE}.{function.name}({', '.join([*arguments, *named])})"


def _by_autograd(base: str, gradient: str, spec: OpSpec) -> Found | None:
    """Return the gradient of the forward operator's reference; None where a name leaves doubt."""
    inputs = [
        tensor
        for tensor in spec.inputs
        if tensor.name != gradient and tensor.param_type != "optional"
    ]
    if not inputs or any(t.param_type == "dynamic" or t.name in _RESULTS for t in inputs):
        return None
    by_name = {t.name: _one_name(t.name) for t in inputs}
    asked = [t.name for t in inputs if by_name[t.name] not in _FIXED]
    # Whole numbers have no gradient: they are a shape, or places.
    whole = [t for t in inputs if t.name in asked and not is_float(t.dtypes[0])]
    if whole or len(spec.outputs) != len(asked):
        return None
    outputs = (replace(spec.outputs[0], name="out"),)
    op = "".join(word.capitalize() for word in base.split("_"))
    forward = find_by_name(replace(spec, op=op, name=base, inputs=tuple(inputs), outputs=outputs))
    if forward is None or forward.read or not {t.name for t in inputs} <= forward.used:
        return None
    wanted = ", ".join(asked)
    given = wanted if len(asked) == 1 else f"({wanted})"
    expression = (
        f"torch.autograd.functional.vjp(lambda {wanted}: {forward.expression}, {given},"
        f" {gradient})[1]"
    )
    return Found(expression, forward.used | {gradient}, ())


def _one_name(name: str) -> str:
    """Return what `_FIXED` calls an input."""
    plain = snake_case(name)
    return "target" if _is_same("target", plain) else plain


def _call(path: str, parameters: Sequence[Parameter], spec: OpSpec) -> Found | None:
    """Return the call that gives every input and attribute its parameter; None where none does."""
    taken: dict[str, str] = {}
    read: dict[str, str] = {}

    def give(parameter: Parameter, tensor: TensorSpec) -> bool:
        if tensor.param_type == "dynamic" or parameter.kind == "tensors":
            fits = tensor.param_type == "dynamic" and parameter.kind == "tensors"
        else:
            fits = parameter.kind == "tensor" or parameter.kind in _READ
        if not fits or parameter.name in taken:
            return False
        taken[parameter.name] = tensor.name + _READ.get(parameter.kind, "")
        if parameter.kind in _READ:
            read[tensor.name] = parameter.kind
        return True

    gradient = _gradient_input(spec)
    waiting: list[TensorSpec] = []
    for tensor in spec.inputs:
        names = ("grad_output", tensor.name) if tensor.name == gradient else (tensor.name,)
        same = next((p for name in names for p in parameters if _is_same(p.name, name)), None)
        if (same is None or not give(same, tensor)) and tensor.param_type != "optional":
            waiting.append(tensor)
    for attr in spec.attrs:
        same = next((p for p in parameters if _is_same(p.name, attr.name)), None)
        if same is None or not _takes(same, attr) or same.name in taken:
            return None
        taken[same.name] = _written(same, attr)
    of_lists = path.startswith(LIST_PREFIX)
    for tensor in waiting:
        # Numbers are named: what comes by order alone is a tensor, or what lists are paired with.
        free = [
            p
            for p in parameters
            if p.name not in taken and ("tensor" in p.kind or (of_lists and p.kind in _READ))
        ]
        if not free or not (of_lists or _may_be(free[0], tensor)) or not give(free[0], tensor):
            return None
    if any(p.name not in taken and (p.is_required or p.name in _TO_BE_SAID) for p in parameters):
        return None
    arguments: list[str] = []
    leading = True
    for parameter in parameters:
        leading = leading and not parameter.is_keyword and parameter.name in taken
        if parameter.name in taken:
            value = taken[parameter.name]
            arguments.append(value if leading else f"{parameter.name}={value}")
    used = frozenset(t.name for t in spec.inputs if any(_reads(a, t.name) for a in arguments))
    return Found(f"{path}({', '.join(arguments)})", used, tuple(read.items()))


def _may_be(parameter: Parameter, tensor: TensorSpec) -> bool:
    """Whether a tensor may be what stands at its place: one of the two names says nothing."""
    name = snake_case(tensor.name)
    plain = _without_number(name) in PLAIN_NAMES
    if name in NEVER_IN_ORDER or (plain and parameter.name in NEVER_IN_ORDER):
        return False
    return plain or _without_number(parameter.name) in PLAIN_NAMES


def _without_number(name: str) -> str:
    return re.sub(r"_?\d+$", "", name)


def _reads(argument: str, name: str) -> bool:
    value = argument.partition("=")[2] or argument
    return value.partition(".")[0] == name


def _is_same(parameter: str, name: str) -> bool:
    plain = snake_case(name)
    return parameter == plain or any({parameter, plain} <= names for names in SAME_ARGUMENTS)


def _takes(parameter: Parameter, attr: AttrSpec) -> bool:
    return parameter.kind in _ATTRIBUTES.get(attr.type, ()) or _is_number_of_reduction(
        parameter, attr
    )


def _is_number_of_reduction(parameter: Parameter, attr: AttrSpec) -> bool:
    return (parameter.name, parameter.kind, attr.type) == ("reduction", "text", "int")


def _written(parameter: Parameter, attr: AttrSpec) -> str:
    """Return an attribute as a parameter takes it."""
    if _is_number_of_reduction(parameter, attr):
        return f"({', '.join(map(repr, _REDUCTIONS))})[{attr.name}]"
    if attr.type == "int" and parameter.kind == "bool":
        return f"bool({attr.name})"
    return attr.name
