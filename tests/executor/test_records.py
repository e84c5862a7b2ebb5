"""What comes out of processes that run other people's code: records and errors as declared."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import HostRefusal, KernelFault, OpkitError, SetupError, UsageError
from opkit.executor.plain import from_bytes, plain_array, read_array, to_bytes
from opkit.executor.records import plain_error, plain_record, read_error, read_record

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


def through_a_pipe(value: Any) -> Any:
    return from_bytes(bytearray(to_bytes(value)))


@pytest.mark.parametrize(
    "error", [FAULT, HostRefusal("no such shape"), SetupError("no memory", help="free some")]
)
def test_an_error_comes_out_as_it_was_raised(error: OpkitError) -> None:
    again = read_error(through_a_pipe(plain_error(error)))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


class Elsewhere(UsageError):
    """An error of a package above."""


def test_an_error_of_a_package_above_comes_out_as_the_nearest_known_one() -> None:
    again = read_error(plain_error(Elsewhere("wrong", help="so")))
    assert (type(again), str(again)) == (UsageError, "wrong\n  help: so")


# A kernel's process says what it likes: an exit code of 0 of its own was taken along.
@pytest.mark.parametrize(
    "said",
    [
        *({"error": kind, "message": "m", "fields": {}} for kind in ("os", "Path", "Diagnostic")),
        *({"error": kind, "message": "m", "fields": {}} for kind in ("Terminated", "no", 3)),
        {"error": "SetupError", "message": "m", "fields": {"exit_code": 0}},
        {"error": "SetupError", "message": "m", "fields": {"help": 3}},
        {"error": "SetupError", "message": "m", "fields": {}, "more": 1},
        {"error": "SetupError", "message": ["m"], "fields": {}},
        {"error": "KernelFault", "message": "m", "fields": {}},
        {"error": "KernelFault", "message": "m", "fields": {"category": "Crash", "line": "x"}},
        {"error": "SetupError", "message": "m"},
        None,
        [],
    ],
)
def test_what_is_no_error_of_opkit_s_is_none(said: Any) -> None:
    with pytest.raises(ValueError):
        read_error(through_a_pipe(said))


@dataclass(frozen=True)
class Inner:
    path: Path
    share: float


@dataclass(frozen=True)
class Outer:
    names: tuple[str, ...]
    inner: Inner | None
    count: int
    places: frozenset[tuple[str, Inner | None]]
    array: np.ndarray[Any, Any] | None = None


RECORD = Outer(("a", "b"), Inner(Path("f"), math.inf), 3, frozenset({("x", None)}))


def test_a_record_comes_out_as_it_was() -> None:
    assert read_record(Outer, through_a_pipe(plain_record(RECORD))) == RECORD
    assert read_record(int | Outer, through_a_pipe(plain_record(7))) == 7


def changed(**fields: Any) -> dict[str, Any]:
    return {**plain_record(RECORD), **fields}


@pytest.mark.parametrize(
    "said",
    [
        *(changed(count=wrong) for wrong in (True, 3.0, "3", None, [3])),
        *(changed(names=wrong) for wrong in ("ab", ["a", 1], {"a": "b"})),
        *(changed(inner=wrong) for wrong in ({}, {"kind": "Outer"}, [1], "f")),
        changed(inner={"kind": "Inner", "path": "f", "share": "1"}),
        changed(inner={"kind": "Inner", "path": "f", "share": 1, "more": 0}),
        changed(places=[["x"]]),
        changed(kind="Inner"),
        changed(more=1),
        {"kind": "Outer"},
        7,
    ],
)
def test_what_is_no_such_record_is_refused(said: Any) -> None:
    with pytest.raises(ValueError):
        read_record(Outer, through_a_pipe(said))


def test_plain_values_come_out_as_they_were() -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    value = {"a": [1, (2.5, None, True)], "b": b"\0\1", "c": 1 + 2j, "d": plain_array(array)}
    again = through_a_pipe(value)
    found = read_array(again.pop("d"))
    assert again == {"a": [1, (2.5, None, True)], "b": b"\0\1", "c": 1 + 2j}
    np.testing.assert_array_equal(found, array)
    assert found.dtype == np.float16
    assert found.flags.writeable
    assert found.flags.aligned


# An empty output ended the command as a bug of opkit's.
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 1 << 40), (), (1,)])
def test_arrays_of_nothing_and_of_one_come_out_as_they_were(shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.int8)
    found = read_array(through_a_pipe(plain_array(array)))
    assert (found.shape, found.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(found, array)


def test_an_array_without_bytes_has_a_shape_without_elements() -> None:
    with pytest.raises(ValueError):
        read_array(through_a_pipe(("\0array", "<f4", (3,), b"")))


def message(header: bytes, rest: bytes = b"") -> bytes:
    return b"opk\1" + len(header).to_bytes(8, "little") + header + rest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"opk",
        b"opk\1" + b"\xff" * 8,
        pickle.dumps({"value": 1}, protocol=5),
        message(b"{"),
        message(b"[" * 100_000),
        message(b"{}"),
        message(b'{"sizes":[],"value":1}', b"more"),
        message(b'{"sizes":[4],"value":1}', b"abc"),
        message(b'{"sizes":[-1,1],"value":1}'),
        message(b'{"sizes":["4"],"value":1}', b"abcd"),
        message(b'{"sizes":[],"value":["buffer",0]}'),
        message(b'{"sizes":[],"value":["buffer"]}'),
        message(b'{"sizes":[],"value":["os.system","true"]}'),
        message(b'{"sizes":[],"value":[]}'),
        message(b'{"sizes":[],"value":' + b"9" * 5000 + b"}"),
        message(json.dumps({"sizes": [], "value": ["complex", "1", "2"]}).encode()),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        from_bytes(data)
