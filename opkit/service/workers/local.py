"""Versions in the service's own process: the shortest way to them, and no protection from them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from opkit.errors import KernelFault, OpkitError, SetupError, UsageError
from opkit.service.settings import LimitSettings
from opkit.service.workers.arguments import Attributes, Inputs, Rule
from opkit.service.workers.attempts import AttemptFailed, Ran
from opkit.service.workers.loaded import (
    Loaded,
    Reference,
    has_odd_values,
    load,
    load_reference,
    modelled_time,
)
from opkit.service.workers.modelled import Modelled
from opkit.service.workers.shared_memory import Tensor

__all__ = ["LocalRunner"]

# The timing model's session belongs to the whole process.
_MODELLING = threading.Lock()


class LocalRunner:
    """One version, or one reference, loaded here."""

    is_ready = True
    memory_bytes = 0
    restarts = 0
    problem = ""

    def __init__(self, folder: Path, limits: LimitSettings, *, reference: bool) -> None:
        """Load it.

        Raises:
            OpkitError: it does not load.
        """
        self._loaded: Loaded | None = None
        self._reference: Reference | None = None
        if reference:
            self._reference = load_reference(folder)
        else:
            self._loaded = load(folder, threads=limits.threads)

    def run(self, inputs: Inputs, attributes: Attributes, seconds: float) -> Ran:
        runs = self._loaded or self._reference
        assert runs is not None
        begin = time.perf_counter()
        try:
            outputs = runs.run(inputs, attributes)
        except OpkitError as error:
            _fail(error)
        except MemoryError as error:
            raise AttemptFailed("memory", "no memory for it") from error
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise AttemptFailed("error", f"{type(error).__name__}: {error}") from error
        return Ran(outputs, time.perf_counter() - begin, has_odd_values(outputs))

    def judge(
        self,
        inputs: Inputs,
        attributes: Attributes,
        outputs: Sequence[Tensor],
        rule: Rule,
        seconds: float,
    ) -> str:
        assert self._reference is not None
        try:
            return self._reference.judge(inputs, attributes, outputs, rule)
        except OpkitError as error:
            _fail(error)

    def model(self, inputs: Inputs, attributes: Attributes, seconds: float) -> Modelled:
        assert self._loaded is not None
        try:
            with _MODELLING:
                return modelled_time(self._loaded, inputs, attributes)
        except OpkitError as error:
            _fail(error)

    def close(self) -> None:
        """There is nothing to end."""


def _fail(error: OpkitError) -> NoReturn:
    kind = "error"
    if isinstance(error, UsageError):
        kind = "refused"
    elif isinstance(error, SetupError):
        kind = "unsupported"
    message = str(error) if isinstance(error, KernelFault) else error.message
    raise AttemptFailed(kind, message) from error
