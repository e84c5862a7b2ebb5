"""The circuit breaker of one version: when it is taken out, and how it comes back."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from opkit.service.settings import BreakerSettings

__all__ = ["AT_ONCE", "Breaker", "BreakerEvent", "BreakerState"]

AT_ONCE = frozenset({"wrong", "crash", "hang", "memory"})
"""Failures of which one is enough: an answer that is wrong, and what costs a process."""
_SOON = 10
"""Times that it stayed out: a version that fails again within so long stays out longer."""


class BreakerState(Enum):
    """Whether a version gets calls."""

    CLOSED = "closed"
    """It does."""
    OPEN = "open"
    """It gets none for a while."""
    TRIAL = "trial"
    """It gets copies of calls, each checked, whose results nobody sees."""


@dataclass(frozen=True)
class BreakerEvent:
    """One change of state."""

    before: BreakerState
    after: BreakerState
    reason: str
    open_seconds: float


class Breaker:
    """Counts failures; thread-safe."""

    def __init__(
        self,
        settings: BreakerSettings,
        *,
        changed: Callable[[BreakerEvent], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin closed.

        Args:
            changed: told of each change of state, from the thread that caused it.
            clock: seconds, for tests.
        """
        self._settings = settings
        self._changed = changed
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: deque[bool] = deque(maxlen=settings.window)
        self._open_seconds = settings.open_seconds
        self._until = 0.0
        self._closed_at = float("-inf")
        self._right_trials = 0
        self._state = BreakerState.CLOSED
        self.reason = ""
        """Why it is not closed."""
        self.times_opened = 0

    @property
    def is_closed(self) -> bool:
        """Whether the version gets calls."""
        return self._state is BreakerState.CLOSED

    @property
    def state(self) -> BreakerState:
        """The state now; an open breaker whose time is over is on trial."""
        if self._state is BreakerState.OPEN and self._clock() >= self._until:
            with self._lock:
                event = self._move(BreakerState.TRIAL, "its time out is over")
            self._tell(event)
        return self._state

    @property
    def seconds_left(self) -> float:
        """How long it stays open; 0 otherwise."""
        is_open = self._state is BreakerState.OPEN
        return max(0.0, self._until - self._clock()) if is_open else 0.0

    def succeed(self) -> None:
        """Count an attempt that gave an answer."""
        # Without the lock: one more success in a window is not worth one.
        self._recent.append(False)

    def fail(self, kind: str, message: str) -> None:
        """Count an attempt that failed; a wrong answer or a lost process opens at once."""
        with self._lock:
            if self._state is not BreakerState.CLOSED:
                return
            self._recent.append(True)
            failures = sum(self._recent)
            if kind not in AT_ONCE and failures < self._settings.failures:
                return
            # Soon after it came back: trial calls do not show what is wrong with it.
            was_soon = self._clock() - self._closed_at < _SOON * self._open_seconds
            self._open_seconds = self._longer() if was_soon else self._settings.open_seconds
            event = self._open(f"{kind}: {message}")
        self._tell(event)

    def try_succeed(self) -> None:
        """Count a trial call that was right."""
        with self._lock:
            if self._state is not BreakerState.TRIAL:
                return
            self._right_trials += 1
            if self._right_trials < self._settings.trials:
                return
            self._recent.clear()
            self._closed_at = self._clock()
            event = self._move(BreakerState.CLOSED, f"{self._right_trials} trial calls were right")
            self.reason = ""
        self._tell(event)

    def try_fail(self, kind: str, message: str) -> None:
        """Count a trial call that failed: it stays out twice as long."""
        with self._lock:
            if self._state is not BreakerState.TRIAL:
                return
            self._open_seconds = self._longer()
            event = self._open(f"trial call: {kind}: {message}")
        self._tell(event)

    def _longer(self) -> float:
        return min(2 * self._open_seconds, self._settings.longest_seconds)

    def _open(self, reason: str) -> BreakerEvent:
        self._until = self._clock() + self._open_seconds
        self._recent.clear()
        self.times_opened += 1
        self.reason = reason
        return self._move(BreakerState.OPEN, reason)

    def _move(self, state: BreakerState, reason: str) -> BreakerEvent:
        event = BreakerEvent(self._state, state, reason, self._open_seconds)
        self._state = state
        self._right_trials = 0
        return event

    def _tell(self, event: BreakerEvent) -> None:
        if self._changed is not None and event.before is not event.after:
            self._changed(event)
