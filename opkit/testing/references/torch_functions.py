"""Torch's functions by a name, and the parameters of each of their forms."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.testing.references.operator_names import OTHER_NAMES

__all__ = ["GRADIENT", "LIST_PREFIX", "Form", "Parameter", "forms_of", "functions_of"]

GRADIENT = "_grad"
"""How names of gradients end."""
LIST_PREFIX = "torch._foreach_"

_LISTS = re.compile(r"^foreach_(\w+?)(?:_inplace)?(?:_(?:scalar|scalar_list|list|tensor))?$")
_PLACES = ("torch.nn.functional", "torch", "torch.special", "torch.linalg", "torch.ops.aten")

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


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    kind: str
    """What it takes: `tensor`, `tensors`, `number`, `numbers`, `int`, `ints`, `bool`, `text`."""
    is_required: bool
    is_keyword: bool


@dataclass(frozen=True)
class Form:
    """One form of a function."""

    parameters: Sequence[Parameter]
    results: int
    """How many it has."""


def functions_of(torch: Any, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield what may be the function of a plain name, with the path that a call writes."""
    lists = _LISTS.match(name)
    places: tuple[str, ...] = _PLACES
    if lists:
        base = OTHER_NAMES.get(lists.group(1), lists.group(1))
        names, places = [f"_foreach_{base}"], ("torch",)
    elif name.endswith(GRADIENT):
        base = name.removesuffix(GRADIENT)
        base = OTHER_NAMES.get(base, base)
        short = base.replace("_", "")
        names = [f"{base}_backward", f"{short}_backward", f"_{base}_backward"]
        places = ("torch.ops.aten",)
    else:
        base = OTHER_NAMES.get(name, name)
        names = [base, base.replace("_", "")]
    for candidate in dict.fromkeys(names):
        for place in places:
            holder: Any = torch
            for part in place.split(".")[1:]:
                holder = getattr(holder, part, None)
            function = getattr(holder, candidate, None)
            written = candidate
            if function is None and "_" not in candidate and places is _PLACES:
                written = _in_words(torch, place).get(candidate, candidate)
                function = getattr(holder, written, None)
            if callable(function) and not isinstance(function, type):
                yield f"{place}.{written}", function


@functools.lru_cache
def _in_words(torch: Any, place: str) -> Mapping[str, str]:
    """Return a module's functions whose names have several words, by their name in one."""
    holder: Any = torch
    for part in place.split(".")[1:]:
        holder = getattr(holder, part)
    return {
        name.replace("_", ""): name
        for name in dir(holder)
        if "_" in name and not name.startswith("_") and not name.endswith("_")
    }


def forms_of(torch: Any, path: str, function: Callable[..., Any]) -> Iterator[Form]:
    """Yield the forms of a function, without those that write into what they are given."""
    form = _python_form(function)
    if form is not None:
        yield form
        return
    place, _, name = path.rpartition(".")
    prefix = {"torch.special": "special_", "torch.linalg": "linalg_"}.get(place, "")
    packet = getattr(torch.ops.aten, prefix + name, None)
    if packet is None:
        # torch.nn.functional has some under names of one word.
        packet = getattr(torch.ops.aten, getattr(function, "__name__", ""), None)
    if packet is None:
        return
    forms = []
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        if any(argument.is_out for argument in schema.arguments):
            continue
        # Numbers beside lists of tensors are numbers; one tensor that holds them is another form.
        if path.startswith(LIST_PREFIX) and any(str(a.type) == "Tensor" for a in schema.arguments):
            continue
        parameters = [
            Parameter(
                argument.name,
                _kind(str(argument.type)),
                not argument.has_default_value(),
                argument.kwarg_only,
            )
            for argument in schema.arguments
        ]
        forms.append(Form(parameters, len(schema.returns)))
    # A tensor that is taken as one says more than a tensor that is read as a number.
    yield from sorted(forms, key=lambda form: -sum("tensor" in p.kind for p in form.parameters))


def _python_form(function: Callable[..., Any]) -> Form | None:
    if not inspect.isfunction(inspect.unwrap(function)):
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = signature.parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    # Functions of Python that have several results are annotated so.
    result = _written(signature.return_annotation).lower()
    if result.startswith("tuple"):
        return None
    return Form(
        [
            Parameter(
                p.name,
                "tensor" if p.annotation is p.empty is p.default else _kind(_written(p.annotation)),
                p.default is p.empty,
                p.kind is p.KEYWORD_ONLY,
            )
            for p in parameters
        ],
        1,
    )


def _written(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _kind(text: str) -> str:
    return next((kind for spelling, kind in _KINDS if spelling in text), "other")
