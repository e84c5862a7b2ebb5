"""The settings of one operator by name, read as what they are."""

from __future__ import annotations

from typing import Any

from opkit.errors import UsageError

from .dimensions import fixed_size, normal_axes

__all__ = ["Settings"]


class Settings(dict[str, Any]):
    """Settings by name. Each reader raises UsageError where a setting is missing or of another
    kind than is asked for."""

    def __missing__(self, name: str) -> Any:
        raise UsageError(f'the setting "{name}" is missing: there are {", ".join(self) or "none"}')

    def integer(self, name: str) -> int:
        """Return a whole number, or a size that is known now."""
        value = self[name]
        try:
            return fixed_size(value)
        except (TypeError, ValueError, UsageError) as err:
            raise self._wrong(name, "a whole number that is known now") from err

    def number(self, name: str) -> float:
        """Return a number."""
        try:
            return float(self[name])
        except (TypeError, ValueError) as err:
            raise self._wrong(name, "a number") from err

    def text(self, name: str) -> str:
        """Return a text."""
        if not isinstance(self[name], str):
            raise self._wrong(name, "a text")
        return str(self[name])

    def truth(self, name: str) -> bool:
        """Return True or False."""
        if self[name] not in (False, True):
            raise self._wrong(name, "True or False")
        return bool(self[name])

    def axis(self, rank: int, name: str = "axis") -> int:
        """Return the index from 0 of the one axis that a setting names."""
        found = self.axes(rank, name)
        if len(found) != 1:
            raise self._wrong(name, "one axis")
        return found[0]

    def axes(self, rank: int, name: str = "axis") -> tuple[int, ...]:
        """Return the increasing indices from 0 of the axes that a setting names; all for None."""
        return normal_axes(self[name], rank)

    def _wrong(self, name: str, expected: str) -> UsageError:
        return UsageError(f'the setting "{name}" is {self[name]!r}, expected {expected}')
