"""One attempt at a call: what comes of it, and the ways in which it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from opkit.service.workers.arguments import Attributes, Inputs, Rule
from opkit.service.workers.modelled import Modelled
from opkit.service.workers.shared_memory import Tensor

__all__ = ["FAILURES", "AttemptFailed", "Ran", "Runner"]

FAILURES = {
    "crash": "its process ended",
    "hang": "it took longer than an attempt may take",
    "memory": "it used more memory than it may",
    "error": "it raised an error, or faulted on the emulated core",
    "wrong": "its answer missed the reference",
    "refused": "it refused inputs that another version takes",
}
"""What counts against a version."""

NEUTRAL = {
    "unavailable": "it has no worker that is ready",
    "unsupported": "it was not built for these data types",
    "unjudged": "its answer had to be checked, and no reference was there to do it",
}
"""What only sends a call to the next version."""


class AttemptFailed(Exception):
    """A version gave no answer; the call goes on to the next."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        """A key of FAILURES or NEUTRAL."""
        self.message = message


@dataclass(frozen=True)
class Ran:
    """What one attempt gave."""

    outputs: list[Tensor]
    seconds: float
    """In the version's own code, without the way there."""
    odd: bool
    """Whether a NaN or an infinity is among the outputs."""


class Runner(Protocol):
    """A version or a reference that can be called: in worker processes, or in this one."""

    @property
    def is_ready(self) -> bool:
        """Whether a call would be answered now."""
        ...

    @property
    def memory_bytes(self) -> int:
        """What its processes hold; 0 in this one."""
        ...

    @property
    def restarts(self) -> int:
        """How many of its processes had to be replaced."""
        ...

    @property
    def problem(self) -> str:
        """Why it does not load; "" while it does, or nothing is known yet."""
        ...

    def run(self, inputs: Inputs, attributes: Attributes, seconds: float) -> Ran:
        """Return the outputs.

        Raises:
            AttemptFailed: it gave none in that time.
        """
        ...

    def judge(
        self,
        inputs: Inputs,
        attributes: Attributes,
        outputs: Sequence[Tensor],
        rule: Rule,
        seconds: float,
    ) -> str:
        """Return why outputs are wrong, "" where they are right; of references only."""
        ...

    def model(self, inputs: Inputs, attributes: Attributes, seconds: float) -> Modelled:
        """Return what the timing model says of the call."""
        ...

    def close(self) -> None:
        """End its processes."""
        ...
