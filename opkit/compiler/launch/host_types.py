"""Sizes of a kernel's type parameters as terms of the host's C++."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..codegen import Host, Plan, Term, Types, VectorKernel, element_bytes, identifier, least

__all__ = ["plan_of_types", "type_sizes"]


def type_sizes(kernel: VectorKernel) -> dict[str, str]:
    """Return what the host's code calls the bytes of an element, by the tensor that has them: one
    for each type parameter that may be of several sizes."""
    if kernel.types is None:
        return {}
    return {tensor: _name(tensor) for tensor in _sized(kernel.types).values()}


def plan_of_types(kernel: VectorKernel, host: Host) -> Plan:
    """Return a kernel's plan whose bytes are terms of the host's C++ where types give them."""
    plan, types = kernel.plan, kernel.types
    if types is None:
        return plan
    sized = _sized(types)
    counts = dict.fromkeys(sized, 0)
    sizes: list[int] = []
    for tensor, size in (*plan.input_bytes, *plan.output_bytes):
        parameter = types.parameter_of.get(tensor, "")
        if parameter in sized:
            counts[parameter] += 1
        else:
            sizes.append(size)
    given = {each.name: getattr(plan, each.name) for each in fields(Plan)}
    terms = [(n, Term(host, _name(sized[parameter]))) for parameter, n in counts.items() if n]
    return _TypedPlan(**given, terms=tuple(terms), sizes=tuple(sizes))


def _name(tensor: str) -> str:
    return f"{identifier(tensor)}Bytes"


def _sized(types: Types) -> dict[str, str]:
    """Return the first tensor of each type parameter that has several sizes."""
    return {
        parameter: tensor
        for parameter, tensor in types.parameters.items()
        if len({element_bytes(row[tensor]) for row in types.combinations}) > 1
    }


@dataclass(frozen=True)
class _TypedPlan(Plan):
    """A plan whose bytes a launch knows."""

    terms: tuple[tuple[int, Term], ...] = ()
    """Pairs of a number of tile tensors and the term for one element's bytes in each."""
    sizes: tuple[int, ...] = ()
    """Bytes of an element of the others."""

    def moved_bytes(self, times: int = 1) -> Any:
        parts = [times * count * term for count, term in self.terms]
        return sum([*parts, times * sum(self.sizes)])

    def least_bytes(self) -> Any:
        return least(*(term for _, term in self.terms), *self.sizes)
