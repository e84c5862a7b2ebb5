"""The exception tree: its picture, its exit codes, its text."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from opkit import errors
from opkit.errors import KernelFault, OpkitError, SpecError, UsageError

CLASSES = {
    name: item
    for name, item in vars(errors).items()
    if inspect.isclass(item) and issubclass(item, BaseException)
}


def test_the_docstring_draws_every_class_with_its_exit_code() -> None:
    drawn = dict(re.findall(r"(\w+) +exit (\d+)", errors.__doc__ or ""))
    assert drawn == {name: str(item.exit_code) for name, item in CLASSES.items()}


def test_the_docstring_draws_every_class_under_its_parent() -> None:
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        name = re.search(r"(\w+) +exit \d+", line)
        if name is None:
            continue
        depth = (name.start() - 4) // 4
        path[depth:] = [name.group(1)]
        bases = [base.__name__ for base in CLASSES[name.group(1)].__bases__]
        assert bases[0] in ((path[depth - 1],) if depth else ("Exception", "BaseException"))


def test_every_class_is_public() -> None:
    assert set(CLASSES) <= set(errors.__all__)


def test_the_next_step_follows_the_message() -> None:
    assert str(UsageError("no chip", help="see opkit targets")) == (
        "no chip\n  help: see opkit targets"
    )
    assert str(UsageError("no chip")) == "no chip"


def test_a_prototype_error_starts_with_its_place() -> None:
    error = SpecError("bad", file=Path("op.json"), line=3, pointer="/0/op")
    assert str(error) == "op.json:3: /0/op: bad"


def test_a_fault_names_category_place_and_core() -> None:
    error = KernelFault(
        "writes past the end",
        category="OutOfBounds",
        file=Path("op_kernel/x.cpp"),
        line=42,
        kernel="x",
        block=3,
        sub_core="aiv0",
        pipe="V",
        instruction=118,
        help="use DataCopyPad",
    )
    assert str(error).splitlines() == [
        "writes past the end [MEM-BOUNDS]",
        "  --> op_kernel/x.cpp:42      x block 3 aiv0, pipe V, instruction 118",
        "  help: use DataCopyPad",
    ]
    assert isinstance(error, OpkitError)
