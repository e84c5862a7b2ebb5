"""PyTorch's own lists of operators and modules through AOTAutograd, compared by its own check.

The lists and the check (`aot_autograd_check`: outputs and gradients against eager) are those of the
installed wheel. What the check refuses with torch's graphs run as they are is no test.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import dynamo_backends
import torch
from device_suites import NO_REFERENCE
from torch.testing._internal.optests import aot_autograd_check

__all__ = ["AotTally", "run_modules", "run_operators"]

TOLERANCE = 1e-4
"""Absolute and relative, of float32; the same as for operators on the device."""


@dataclass
class AotTally:
    """What a suite has found."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    compiled: int = 0
    left: int = 0

    def judge(self, name: str, run: Callable[[], None]) -> None:
        """Run a check with torch's graphs as they are, then with opkit's kernels."""
        os.environ[dynamo_backends.BACKEND] = "eager"
        dynamo_backends.seen = dynamo_backends.Seen()
        try:
            run()
        except Exception:
            return
        if not dynamo_backends.seen.graphs:
            return
        os.environ[dynamo_backends.BACKEND] = "opkit"
        try:
            run()
        except Exception as error:
            cause = error.__cause__ or error
            message = " ".join(str(cause).split())[:200]
            self.failures.append(f"{name}: {type(cause).__name__}: {message}")
        else:
            self.passed += 1
        self.compiled += dynamo_backends.seen.compiled
        self.left += dynamo_backends.seen.left

    @property
    def tests(self) -> int:
        return self.passed + len(self.failures)


def run_operators(step: int, seconds: float = float("inf")) -> AotTally:
    """Check one float32 sample of each `step`-th operator of op_db, with gradients where it has
    them."""
    from torch.testing._internal.common_methods_invocations import op_db

    def samples() -> Iterator[tuple[str, Callable[[], None]]]:
        for op in op_db[::step]:
            if NO_REFERENCE.search(op.name) or not op.supports_dtype(torch.float32, "cpu"):
                continue
            given = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
            for sample in itertools.islice(given, 1):
                args = (sample.input, *sample.args)
                yield op.formatted_name, functools.partial(_check, op, args, sample.kwargs)

    return _judged(samples(), seconds)


def run_modules(step: int, seconds: float = float("inf")) -> AotTally:
    """Check the first float32 inputs of each `step`-th module of module_db, in evaluation, with
    gradients of inputs and parameters."""
    from torch.testing._internal.common_modules import module_db

    def samples() -> Iterator[tuple[str, Callable[[], None]]]:
        for info in module_db[::step]:
            made = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=False
            )
            for given in itertools.islice(made, 1):
                built = given.constructor_input
                module = info.module_cls(*built.args, **built.kwargs).to(torch.float32).eval()
                called = functools.partial(torch.func.functional_call, module)
                state = dict(module.named_parameters())
                args = (state, given.forward_input.args, given.forward_input.kwargs)
                yield info.name, functools.partial(_check, called, args, {})

    return _judged(samples(), seconds)


def _judged(samples: Iterator[tuple[str, Callable[[], None]]], seconds: float) -> AotTally:
    warnings.simplefilter("ignore")
    dynamo_backends.replace_backends()
    tally, end = AotTally(), time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            name, run = next(samples)
        except StopIteration:
            break
        tally.judge(name, run)
    return tally


def _check(call: Callable[..., Any], args: Any, kwargs: Any) -> None:
    close = functools.partial(torch.testing.assert_close, rtol=TOLERANCE, atol=TOLERANCE)
    equal = functools.partial(close, equal_nan=True)
    torch._dynamo.reset()
    aot_autograd_check(
        call, args, kwargs, dynamic=False, assert_equals_fn=equal, check_gradients="auto"
    )
