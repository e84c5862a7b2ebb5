"""The table of references that are written by operators' documents: functions, bound to operators.

A function's signature says which operator it is for. Parameters before the `*` are the operator's
inputs in the OpDef's order: the input that is called a gradient is `dy` and is counted apart, and
one whose name begins with `_` is not read. Parameters behind it are attributes, or inputs, of that
very name; one with a default may be absent. Annotations say what an input becomes, see `Kind`.
What a document says nothing of is None, instead of a result or of all of them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import numpy as np

from opkit.errors import SetupError

__all__ = [
    "BY_NAME",
    "OF_OPERATORS",
    "Array",
    "Arrays",
    "Documented",
    "Kind",
    "Number",
    "Numbers",
    "Parameter",
    "Tensor",
    "Tensors",
    "Whole",
    "documented",
    "reference_package",
    "tensors",
    "torch",
]

Tensor: TypeAlias = Any
"""A tensor of torch's, in double precision or of whole numbers."""
Tensors: TypeAlias = list[Any]
"""Tensors of an input that is a list."""
Array: TypeAlias = Any
"""An array of NumPy's, or what computes as one does: nothing of torch's is applied to it."""
Arrays: TypeAlias = list[Any]
"""As `Tensors`, of `Array`."""
Whole: TypeAlias = Any
"""A tensor of whole numbers or truth values, where the operator's types say which input it is."""
Number: TypeAlias = Any
"""The one element of an input, an int or a float."""
Numbers: TypeAlias = list[Any]
"""The elements of an input, in lists as its axes are."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Kind(Enum):
    """What an input, or an attribute, becomes before a function has it."""

    TENSOR = "Tensor"
    TENSORS = "Tensors"
    ARRAY = "Array"
    ARRAYS = "Arrays"
    WHOLE = "Whole"
    NUMBER = "Number"
    NUMBERS = "Numbers"
    AS_IT_IS = ""

    @property
    def is_torch(self) -> bool:
        """Whether it is a tensor of torch's, or a list of them."""
        return self in (Kind.TENSOR, Kind.TENSORS, Kind.WHOLE)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    kind: Kind
    is_named: bool
    """Whether it is bound by its name, not by order."""
    is_required: bool

    @property
    def is_read(self) -> bool:
        """Whether the function looks at it."""
        return not self.name.startswith("_")


@dataclass(frozen=True)
class Documented:
    """One function of the table."""

    name: str
    """In the table: the function's own."""
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    results: int | None
    """How many it gives; None where only its value says."""
    divisors: frozenset[str]
    """Parameters that a result of whole numbers is divided by."""
    exponents: frozenset[str]
    """Parameters that are exponents."""

    @property
    def takes_gradient(self) -> bool:
        """Whether an input that is called a gradient is counted apart."""
        return any(parameter.name == "dy" for parameter in self.parameters)

    @property
    def formula(self) -> str:
        """What it computes, in a line."""
        return (self.function.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Return its results, from inputs as arrays or as torch's tensors."""
        placed = [p for p in self.parameters if not p.is_named]
        by_name = {p.name: p.kind for p in self.parameters if p.is_named}
        return self.function(
            *(_as(p.kind, value) for p, value in zip(placed, values, strict=True)),
            **{name: _as(by_name[name], value) for name, value in named.items()},
        )


OF_OPERATORS: dict[str, list[Documented]] = {}
"""By operators' names, the first to try first; `lookup` has it filled."""
BY_NAME: dict[str, Documented] = {}
"""By their own names."""


def documented(
    *operators: str, divisors: Sequence[str] = (), exponents: Sequence[str] = ()
) -> Callable[[_Function], _Function]:
    """Enter a function as the reference of operators, by their names in snake_case, no version.

    Of several for one operator the first counts that takes all its inputs and attributes.

    Args:
        divisors: parameters that a result of whole numbers is divided by: their values are large.
        exponents: parameters that are exponents: whole ones are small.
    """

    def enter(function: _Function) -> _Function:
        name = function.__name__
        parameters = tuple(map(_parameter, inspect.signature(function).parameters.values()))
        row = Documented(
            name,
            function,
            parameters,
            _results(str(inspect.signature(function).return_annotation)),
            frozenset(divisors),
            frozenset(exponents),
        )
        if name in BY_NAME:
            raise ValueError(f"two references are called {name}")
        BY_NAME[name] = row
        for operator in operators:
            OF_OPERATORS.setdefault(operator, []).append(row)
        return function

    return enter


def _parameter(parameter: inspect.Parameter) -> Parameter:
    first = str(parameter.annotation).partition(" ")[0]
    kind = next((kind for kind in Kind if kind.value == first), Kind.AS_IT_IS)
    is_named = parameter.kind is parameter.KEYWORD_ONLY
    return Parameter(parameter.name, kind, is_named, parameter.default is parameter.empty)


def _results(annotation: str) -> int | None:
    if "..." in annotation:
        return None
    return annotation.count(",") + 1


def _as(kind: Kind, value: Any) -> Any:
    if kind is Kind.NUMBER and hasattr(value, "item"):
        return value.item()
    if kind is Kind.NUMBERS and hasattr(value, "tolist"):
        return value.tolist()
    return tensors(value) if kind.is_torch else value


def tensors(value: Any) -> Any:
    """Return an array, or a list of them, as torch's, of memory that functions may write into.

    What is no array stays.
    """
    if isinstance(value, list):
        return [tensors(one) for one in value]
    return torch.tensor(_signed(value)) if isinstance(value, np.ndarray) else value


def _signed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return unsigned words as torch's own whole numbers: few functions of it take unsigned ones.

    A value that has none of these stays what it is, as differences and quotients would be others.
    """
    fits = array.dtype == np.uint64 and (array <= np.iinfo(np.int64).max).all()
    return array.astype(np.int64) if fits else array


def reference_package(name: str, *, wanted_by: str) -> Any:
    """Return a package that a reference names; nothing here needs one to work.

    Raises:
        SetupError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(
            f"the reference is {wanted_by}, and {name} is not installed",
            help=f"install it with pip install {name}",
        ) from error


class _Torch:
    """Torch, loaded on first use: it is no dependency of opkit."""

    def __getattr__(self, name: str) -> Any:
        return getattr(reference_package("torch", wanted_by="one of torch's functions"), name)


torch: Any = _Torch()
"""The package, for the functions of the table."""
