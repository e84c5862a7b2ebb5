"""The reference of an operator that comes without one: torch's function of its name, as a call.

A name serves if torch has a function whose parameters take every required input and every
attribute, each by its name or, for tensors, in order, and that has as many results. What does not
fit whole is no reference: a wrong one would be worse than none.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.errors import SetupError, UsageError
from opkit.schema import AttrSpec, OpSpec, TensorSpec, snake_case
from opkit.testing.expressions import TENSORS, check_expression, reference_package
from opkit.testing.operator_names import ANOTHER_OPERATOR, OTHER_NAMES, SAME_ARGUMENTS, WRITTEN_OUT

__all__ = ["Found", "find_by_name"]

_VERSION = re.compile(r"(_?v\d+|_d)$")
_LISTS = re.compile(r"^foreach_(\w+?)(?:_inplace)?(?:_(?:scalar|scalar_list|list|tensor))?$")
_GRADIENT = "_grad"

# What a parameter's type, as torch writes it, takes.
_KINDS = (
    ("List[Tensor]", "tensors"),
    ("list[torch.Tensor]", "tensors"),
    ("Tensor", "tensor"),
    ("List[number]", "numbers"),
    ("List[int]", "ints"),
    ("list[int]", "ints"),
    ("List[SymInt]", "ints"),
    ("List[float]", "numbers"),
    ("list[float]", "numbers"),
    ("bool", "bool"),
    ("str", "text"),
    ("number", "number"),
    ("float", "number"),
    ("int", "int"),
    ("SymInt", "int"),
)
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
    """See `opkit.testing.expressions`."""
    used: frozenset[str]
    """The inputs that it reads; optional ones beside them are left out of calls."""
    read: tuple[tuple[str, str], ...]
    """Inputs whose values it reads as `number`, `int`, `ints` or `numbers`, with which of them."""


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: str
    is_required: bool
    is_keyword: bool


def find_by_name(spec: OpSpec) -> Found | None:
    """Return the reference that an operator's name says; None where torch has none, or is not here.

    Source: operator_names.py, and torch's own schemas and signatures.
    """
    try:
        torch = reference_package(TENSORS, wanted_by=spec.op)
    except SetupError:
        return None
    name = _plain_name(spec.op)
    # Which of `x` and `y` is the gradient nothing says.
    if name.endswith(_GRADIENT) and _gradient_input(spec) is None:
        return None
    written = _written_out(name, spec)
    if written is not None:
        return written
    for path, function in _functions(torch, name):
        for parameters, results in _signatures(torch, path, function):
            if _takes_numbers(parameters) != name.endswith("_scalar_list"):
                continue
            bound = _call(path, parameters, spec) if results in (None, len(spec.outputs)) else None
            if bound is not None:
                return bound
    return None


def _takes_numbers(parameters: Sequence[_Parameter]) -> bool:
    """Whether it has a required list of numbers, which only names ending in `ScalarList` mean."""
    return any(p.kind == "numbers" and p.is_required for p in parameters)


def _gradient_input(spec: OpSpec) -> str | None:
    names = (tensor.name for tensor in spec.inputs)
    return next((name for name in names if _is_same("grad_output", name)), None)


def _plain_name(op: str) -> str:
    name = snake_case(op)
    return name if name in ANOTHER_OPERATOR else _VERSION.sub("", name) or name


def _written_out(name: str, spec: OpSpec) -> Found | None:
    names = [tensor.name for tensor in spec.inputs]
    gradient = _gradient_input(spec) if name.endswith(_GRADIENT) else None
    placed = [tensor for tensor in names if tensor != gradient]
    for template in WRITTEN_OUT.get(name, ()):
        try:
            expression = template.format(*placed, dy=gradient)
            check_expression(expression, spec, where=spec.op)
        # Another operator of this name has other inputs.
        except (IndexError, UsageError):
            continue
        used = frozenset(n for n in names if re.search(rf"\b{re.escape(n)}\b", expression))
        needed = {t.name for t in spec.inputs if t.param_type != "optional"}
        # The output that some gradients are given beside the input changes nothing.
        if needed - used and not name.endswith(_GRADIENT):
            continue
        read = [(n, "int") for n in names if f"{n}.item()" in expression]
        if any((t.name, "int") in read for t in spec.inputs if t.param_type == "dynamic"):
            continue
        return Found(expression, used, tuple(read))
    return None


def _functions(torch: Any, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield what may be the function, with the path that an expression calls it by."""
    lists = _LISTS.match(name)
    if lists:
        base = OTHER_NAMES.get(lists.group(1), lists.group(1))
        names, places = [f"_foreach_{base}"], ["torch"]
    elif name.endswith(_GRADIENT):
        base = name.removesuffix(_GRADIENT)
        base = OTHER_NAMES.get(base, base)
        names = [f"{base}_backward", f"{base.replace('_', '')}_backward"]
        places = ["torch.ops.aten"]
    else:
        base = OTHER_NAMES.get(name, name)
        names = [base, base.replace("_", "")]
        places = ["torch.nn.functional", "torch", "torch.special", "torch.linalg", "torch.ops.aten"]
    for candidate in dict.fromkeys(names):
        for place in places:
            holder: Any = torch
            for part in place.split(".")[1:]:
                holder = getattr(holder, part, None)
            function = getattr(holder, candidate, None)
            if callable(function) and not isinstance(function, type):
                yield f"{place}.{candidate}", function


def _signatures(
    torch: Any, path: str, function: Callable[..., Any]
) -> Iterator[tuple[list[_Parameter], int | None]]:
    """Yield the parameters of each form of a function, and how many results it has, if known."""
    signature = _python_signature(function)
    if signature is not None:
        yield signature, None
        return
    place, _, name = path.rpartition(".")
    prefix = {"torch.special": "special_", "torch.linalg": "linalg_"}.get(place, "")
    packet = getattr(torch.ops.aten, prefix + name, None)
    if packet is None:
        return
    forms = []
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        if any(argument.is_out for argument in schema.arguments):
            continue
        # Numbers beside lists of tensors are numbers; one tensor that holds them is another form.
        if "_foreach_" in path and any(str(a.type) == "Tensor" for a in schema.arguments):
            continue
        forms.append(
            (
                [
                    _Parameter(
                        argument.name,
                        _kind(str(argument.type)),
                        not argument.has_default_value(),
                        argument.kwarg_only,
                    )
                    for argument in schema.arguments
                ],
                len(schema.returns),
            )
        )
    # A tensor that is taken as one says more than a tensor that is read as a number.
    yield from sorted(forms, key=lambda form: -sum("tensor" in p.kind for p in form[0]))


def _python_signature(function: Callable[..., Any]) -> list[_Parameter] | None:
    if not inspect.isfunction(inspect.unwrap(function)):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    return [
        _Parameter(
            p.name,
            _kind(p.annotation if isinstance(p.annotation, str) else _written(p.annotation)),
            p.default is p.empty,
            p.kind is p.KEYWORD_ONLY,
        )
        for p in parameters
    ]


def _written(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _kind(text: str) -> str:
    return next((kind for spelling, kind in _KINDS if spelling in text), "other")


def _call(path: str, parameters: Sequence[_Parameter], spec: OpSpec) -> Found | None:
    """Return the call that gives every input and attribute its parameter; None where none does."""
    taken: dict[str, str] = {}
    read: dict[str, str] = {}

    def give(parameter: _Parameter, tensor: TensorSpec) -> bool:
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

    waiting: list[TensorSpec] = []
    for tensor in spec.inputs:
        same = next((p for p in parameters if _is_same(p.name, tensor.name)), None)
        if (same is None or not give(same, tensor)) and tensor.param_type != "optional":
            waiting.append(tensor)
    for attr in spec.attrs:
        same = next((p for p in parameters if _is_same(p.name, attr.name)), None)
        if same is None or not _takes(same, attr) or same.name in taken:
            return None
        is_flag = attr.type == "int" and same.kind == "bool"
        taken[same.name] = f"bool({attr.name})" if is_flag else attr.name
    for tensor in waiting:
        # Numbers are named: what comes by order alone is a tensor, or what lists are paired with.
        if not any(
            give(p, tensor)
            for p in parameters
            if "tensor" in p.kind or (path.startswith("torch._foreach_") and p.kind in _READ)
        ):
            return None
    if any(p.is_required and p.name not in taken for p in parameters):
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


def _reads(argument: str, name: str) -> bool:
    value = argument.partition("=")[2] or argument
    return value.partition(".")[0] == name


def _is_same(parameter: str, name: str) -> bool:
    return parameter == name or any({parameter, name} <= names for names in SAME_ARGUMENTS)


def _takes(parameter: _Parameter, attr: AttrSpec) -> bool:
    return parameter.kind in _ATTRIBUTES.get(attr.type, ())
