"""One version of an operator while it is served."""

from __future__ import annotations

from dataclasses import dataclass, field

from opkit.service.serving.breaker import Breaker
from opkit.service.serving.calls import Request
from opkit.service.store import Version
from opkit.service.workers import Modelled, Runner

__all__ = ["ServedVersion"]


@dataclass
class ServedVersion:
    """A version with what runs it and what is known of it."""

    version: Version
    runner: Runner
    breaker: Breaker
    modelled: dict[str, Modelled] = field(default_factory=dict)
    """By signature."""
    asked: set[str] = field(default_factory=set)
    """Signatures that the timing model has been asked for."""
    modeller: Runner | None = None
    """Asks the timing model, which takes long, in a process that no call waits for."""
    on_trial: bool = False
    """Whether a trial call is under way."""
    evidence: Request | None = None
    """A call that it failed: the first of its trial calls, so that what is wrong for one shape
    does not come back because it is right for others."""

    @property
    def label(self) -> str:
        """The version's label among those of its operator."""
        return self.version.label
