"""References of one line, such as `torch.clamp(x, min=low)`: a call over inputs and attributes.

An expression is Python's; its names are the operator's inputs and attributes, `torch`, `numpy`
(also `np`) and `math`, and `documented`, whose functions are what operators' documents say. Where
it names torch, inputs are tensors, else arrays; a list of tensors is a list, an input that is left
out None, an attribute that is a list a list.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkit.errors import OperatorError, UsageError
from opkit.schema import AttrValue, OpSpec, nearest
from opkit.testing.cases.golden import as_outputs
from opkit.testing.documented import NAMESPACE, Namespace, reference_package, tensors
from opkit.testing.numbers import Array, Input, is_complex

__all__ = [
    "TENSORS",
    "check_expression",
    "evaluate_expression",
    "is_expression",
    "names_of",
]

TENSORS = "torch"
"""The package whose functions take tensors of its own."""

_MODULES = ("torch", "numpy", "np", "math", NAMESPACE)


def is_expression(golden: str) -> bool:
    """Whether a case's `golden` is an expression, neither `FILE.py:FUNCTION` nor `torch.NAME`."""
    return not golden.rpartition(":")[0].endswith(".py") and not _is_dotted(golden)


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def check_expression(text: str, spec: OpSpec, *, where: str) -> None:
    """Refuse an expression that is no Python, or has names that are no operator's.

    Args:
        where: comes first in what is raised.
    Raises:
        UsageError: the text says what is wrong.
    """
    known = [tensor.name for tensor in spec.inputs] + [attr.name for attr in spec.attrs]
    for name in names_of(text, where=where):
        if name in known or name in _MODULES or hasattr(builtins, name):
            continue
        near = nearest(name, known)
        raise UsageError(
            f'{where}: "{text}": {spec.op} has no input or attribute "{name}"',
            help=f'did you mean "{near}"?'
            if near
            else f"it has {', '.join(known)}; torch, numpy and math are there too",
        )


def names_of(text: str, *, where: str = "the reference") -> set[str]:
    """Return the names that an expression reads and does not bind itself.

    Raises:
        UsageError: it is no expression.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(
            f'{where}: "{text}" is not an expression: {error}',
            help="write a call such as torch.clamp(x, min=low), or FILE.py:FUNCTION",
        ) from error
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in nodes if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in nodes} - bound


def evaluate_expression(
    text: str, spec: OpSpec, inputs: Sequence[Input], *, attrs: Mapping[str, AttrValue]
) -> tuple[Array, ...]:
    """Return the outputs that an expression gives.

    Args:
        inputs: one of each of the operator's, wide or as the reference is to compute.
    Raises:
        OperatorError: the expression fails.
        SetupError: it names torch, which is not installed.
    """
    uses_torch = TENSORS in names_of(text)
    names: dict[str, Any] = {"np": np, "numpy": np, "math": math, NAMESPACE: Namespace()}
    if uses_torch:
        names["torch"] = reference_package(TENSORS, wanted_by=text)
    names.update(
        (name, list(value) if isinstance(value, tuple) else value) for name, value in attrs.items()
    )
    try:
        for tensor, value in zip(spec.inputs, inputs, strict=True):
            names[tensor.name] = tensors(value) if uses_torch else value
        with np.errstate(all="ignore"):
            result = eval(text.strip(), names)
        if result is None:
            raise ValueError("it gives nothing for these shapes and attributes")
        outputs = as_outputs(result)
        takes_complex = any(is_complex(d) for tensor in spec.outputs for d in tensor.dtypes)
        if not takes_complex and any(np.iscomplexobj(output) for output in outputs):
            raise TypeError("it gives complex numbers, which no output of the operator holds")
        return outputs
    # What it calls may raise anything; it is the user's line, or a function that does not fit.
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise OperatorError(f"{text}: {type(error).__name__}: {first}") from error
