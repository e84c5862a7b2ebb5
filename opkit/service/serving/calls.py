"""A call and its answer, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opkit.service.serving.shadow import copied
from opkit.service.workers import Attributes, Inputs, Tensor

__all__ = ["Answer", "Attempt", "Request", "attributes_of", "kept_copy"]


@dataclass(frozen=True)
class Request:
    """One call."""

    inputs: Inputs
    attributes: Attributes
    seconds: float
    caller: str | None = None
    """Who calls, for pins and shares by caller."""
    version: str | None = None
    """A version that the caller wants."""


@dataclass(frozen=True)
class Attempt:
    """A version that gave no answer."""

    version: str
    kind: str
    message: str


@dataclass(frozen=True)
class Answer:
    """What a call came to."""

    outputs: list[Tensor]
    version: str
    """The label of the version that answered, or `reference`."""
    digest: str
    """Its content; "" of the reference."""
    reason: str
    """Why the call went to the version that it went to first."""
    attempts: tuple[Attempt, ...]
    """The versions that gave no answer before."""
    checked: bool
    """Whether the answer was held against the reference."""
    seconds: float


def kept_copy(request: Request) -> Request:
    """Return a call that stays as it is when its caller goes on."""
    return Request(copied(request.inputs), request.attributes, request.seconds)


def attributes_of(value: Mapping[str, object] | None) -> Attributes:
    """Return attributes with NumPy's scalars and arrays as Python's own."""
    return {
        name: item.tolist() if hasattr(item, "tolist") else item
        for name, item in (value or {}).items()
    }
