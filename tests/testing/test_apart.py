"""Libraries in a process of their own: data comes out of it, and errors as if raised here."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import HostRefusal, KernelFault, OperatorError, OpkitError, SetupError
from opkit.testing.apart import _plain_error, _read_error

FAULT = KernelFault(
    "DataCopy writes past the end",
    category="OutOfBounds",
    file=Path("/p/op_kernel/add.cpp"),
    line=42,
    kernel="add",
    block=3,
    sub_core="aiv",
    pipe="MTE3",
    instruction=7,
    help="check the length",
)


@pytest.mark.parametrize(
    "error", [FAULT, HostRefusal("no such shape"), SetupError("no memory", help="free some")]
)
def test_an_error_comes_out_as_it_was_raised(error: OpkitError) -> None:
    again = _read_error(_plain_error(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


@pytest.mark.parametrize("kind", ["os", "Path", "Diagnostic", "Terminated", "nothing"])
def test_an_error_names_no_class_but_opkit_s_own(kind: str) -> None:
    # A kernel's process says what it likes.
    found = _read_error({"error": kind, "message": "m", "fields": {"file": ("\0path", "f")}})
    assert type(found) is OperatorError
    assert str(found) == "m"
