"""A compilation that explodes ends by an error that says what it took, and where."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler.ir import allowance, charge
from opkit.errors import UsageError

SPEC = oc.TensorSpec("x", (64,), "float32")


def endless(x: Any) -> Any:
    while True:
        x = x + 1.0


def doubled(x: Any) -> Any:
    held = []
    while True:
        held.append(bytearray(1 << 20))
        x = x * 2.0


@pytest.mark.parametrize(
    ("function", "variable", "limit", "unit"),
    [
        (endless, "OPKIT_COMPILE_SECONDS", "0.2", "s of processor time"),
        (doubled, "OPKIT_COMPILE_GIB", "0.25", "GiB of memory"),
    ],
    ids=["time", "memory"],
)
def test_a_program_that_never_ends_is_an_error_at_its_line(
    function: Callable[..., Any], variable: str, limit: str, unit: str, monkeypatch: Any
) -> None:
    # Compiling a resize took 22 GB, until somebody ended it.
    monkeypatch.setenv(variable, limit)
    with pytest.raises(oc.CompileLimitError) as raised:
        oc.trace(function, [SPEC])
    error = raised.value
    assert error.resource == variable
    assert error.taken > error.most == float(limit)
    assert unit in error.message
    assert f"{variable}=N" in str(error)
    assert error.location is not None
    assert error.location.file.endswith("test_compile_limits.py")


def test_passes_and_kernels_that_explode_are_the_same_error(monkeypatch: Any) -> None:
    def chain(x: Any) -> Any:
        for _ in range(300):
            x = (x + 1.0).apply("maximum", 0.5) * 1.5
        return x

    graph = oc.trace(chain, [SPEC])
    monkeypatch.setenv("OPKIT_COMPILE_SECONDS", "0.001")
    with pytest.raises(oc.CompileLimitError, match=r"may take 0\.001"):
        oc.compile_stages(graph, find_chip("Ascend910B2"))


def test_one_allowance_serves_what_it_encloses_and_nothing_else(monkeypatch: Any) -> None:
    charge()  # outside of a compilation nothing is counted
    monkeypatch.setenv("OPKIT_COMPILE_SECONDS", "0.05")

    def spend() -> None:
        while True:
            charge()

    with allowance(), allowance(), pytest.raises(oc.CompileLimitError):
        spend()
    # Another thread's time, and what came before, are not this compilation's.
    with allowance():
        other = threading.Thread(target=lambda: sum(range(10**6)))
        other.start()
        other.join()
        for _ in range(1000):
            charge()


@pytest.mark.parametrize("text", ["much", "0", "-1", "nan"])
def test_a_limit_that_is_no_number_is_refused(text: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPKIT_COMPILE_GIB", text)
    with pytest.raises(UsageError, match=re.escape(f"OPKIT_COMPILE_GIB={text} is no number")):
        oc.trace(lambda x: x + 1.0, [SPEC])
