"""Which version answers a call: the state of one operator, and the rule that reads it."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from opkit.errors import UsageError
from opkit.service.settings import DeploymentSettings

__all__ = ["Deployment", "place_of"]

_PLACES = 1 << 32


@dataclass(frozen=True)
class Deployment:
    """What is deployed of one operator; versions by label."""

    default: str
    shares: Mapping[str, float] = field(default_factory=dict)
    """Shares of the calls for versions other than the default."""
    by: str = "caller"
    pins: Mapping[str, str] = field(default_factory=dict)
    """Version by caller."""
    shadow: Mapping[str, float] = field(default_factory=dict)
    """Versions that get copies of a share of the calls."""
    choice: str = "off"
    retired: tuple[str, ...] = ()
    """Versions that get no calls, not even when others fail."""

    @classmethod
    def first(cls, settings: DeploymentSettings, labels: Collection[str]) -> Deployment:
        """Return what a configuration asks for.

        Raises:
            UsageError: it names a version that is not there, or there is none.
        """
        if not labels:
            raise UsageError("an operator without versions cannot be deployed")
        values = settings.model_dump()
        values["default"] = settings.default or next(iter(labels))
        found = cls(**values)
        found.refuse_unless_known(labels)
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Deployment:
        """Return what `to_json` gave; what a newer opkit may have added is left out."""
        known = {item.name for item in fields(cls)}
        values = {name: item for name, item in value.items() if name in known}
        values["retired"] = tuple(values.get("retired", ()))
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**asdict(self), "retired": list(self.retired)}

    def changed(self, changes: Mapping[str, Any], labels: Collection[str]) -> Deployment:
        """Return the state after a change of some fields.

        Raises:
            UsageError: no such field or version, or values that do not fit.
        """
        known = {item.name for item in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise UsageError(
                f'a deployment has no "{unknown[0]}"', help=f"it has {', '.join(sorted(known))}"
            )
        found = replace(self, **{**changes, "retired": tuple(changes.get("retired", self.retired))})
        found.refuse_unless_known(labels)
        return found

    def refuse_unless_known(self, labels: Collection[str]) -> None:
        """Raise UsageError unless versions are there and shares fit."""
        named = [self.default, *self.shares, *self.pins.values(), *self.shadow, *self.retired]
        for label in named:
            if label not in labels:
                known = ", ".join(sorted(labels))
                raise UsageError(f'there is no version "{label}"', help=f"there are {known}")
        for label in {self.default, *self.shares} & set(self.retired):
            raise UsageError(f"{label} is retired and cannot have calls")
        every = [*self.shares.values(), *self.shadow.values()]
        if any(not 0 <= share <= 1 for share in every) or sum(self.shares.values()) > 1 + 1e-9:
            raise UsageError("shares are from 0 to 1, and come to no more than 1 together")
        if self.default in self.shares:
            raise UsageError(f"{self.default} is the default: it has what the shares leave")
        if self.by not in ("caller", "request") or self.choice not in (
            "off",
            "modelled",
            "measured",
        ):
            raise UsageError(
                f"by is {self.by!r} and choice {self.choice!r}",
                help="by: caller or request; choice: off, modelled or measured",
            )

    @cached_property
    def _ends(self) -> tuple[list[float], list[str]]:
        ends, total = [], 0.0
        for share in self.shares.values():
            total += share
            ends.append(total)
        return ends, list(self.shares)

    def arm(self, place: float) -> str:
        """Return the version of a place between 0 and 1.

        A version keeps its callers when its share grows, because places begin at 0 for the first.
        """
        ends, labels = self._ends
        index = bisect.bisect_right(ends, place)
        return labels[index] if index < len(labels) else self.default


def place_of(operator: str, who: str) -> float:
    """Return where a caller or request stands between 0 and 1, the same in every process."""
    digest = hashlib.blake2b(f"{operator}\0{who}".encode("utf-8", "replace"), digest_size=4)
    return int.from_bytes(digest.digest(), "big") / _PLACES
