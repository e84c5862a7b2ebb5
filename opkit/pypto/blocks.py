"""`with pypto.function("MAIN", x, y):` a program written as a block over declared tensors.

The block is traced once, where it stands; `pypto.runtime` runs what was traced last on data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opkit.compiler import GraphBuilder, GraphError

from .building import building
from .declared import Declared
from .diagnostics import check_backward
from .location import here
from .programs import Program, array_of, copy_to, finished, kernel_name, kind_of, run_program
from .settings import options_of
from .verification import check_goldens

__all__ = ["Block", "function", "run_last_block"]

_traced_last: list[Block] = []
"""At most one: what `pypto.runtime` runs."""


class Block:
    """What a `with` of `pypto.function` traces."""

    def __init__(self, name: str, tensors: Sequence[Any]) -> None:
        """Name the tensors that the block reads and writes, in the order of the data.

        Raises:
            GraphError: one of them is no declared tensor.
        """
        for number, tensor in enumerate(tensors):
            if not isinstance(tensor, Declared):
                raise GraphError(
                    f"argument {number + 1} of the block is {type(tensor).__name__}, and no tensor"
                    " that was declared before it",
                    location=here(),
                    help="x = pypto.tensor((32, 32), pypto.DT_FP32)",
                )
        self.name = name
        self.tensors: dict[str, Declared] = {f"tensor{n}": t for n, t in enumerate(tensors)}
        self._place = here()
        self._builder = GraphBuilder(kernel_name(name))
        self._building = building(self._builder)
        self.program: Program | None = None
        """None where the block writes to none of its tensors."""

    def __enter__(self) -> Block:
        check_backward()
        for name, tensor in self.tensors.items():
            tensor.enter(self._builder, name)
        self._building.__enter__()
        return self

    def __iter__(self) -> Iterator[Block]:
        """Yield the block once: the public project's tests write its body as a loop."""
        yield self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._building.__exit__()
        if kind is None:
            _traced_last[:] = [self]
            if any(tensor.is_written for tensor in self.tensors.values()):
                self.program = finished(self._builder, self.tensors, None, self.name, self._place)
        for tensor in self.tensors.values():
            tensor.builder = None

    def run(self, data: Sequence[Any]) -> None:
        """Run the block on NumPy arrays or torch tensors, and write its results to them.

        Raises:
            GraphError: they are not as many as the block's tensors, or of other sizes or types;
                or the block writes to none of its tensors.
        """
        if self.program is None:
            raise GraphError(
                f"{self.name} writes to none of its tensors",
                location=self._place,
                help="write it: out[:] = result, out.move(result), pypto.assemble(..., out)",
            )
        if len(data) != len(self.tensors):
            raise GraphError(
                f"{self.name} is over {len(self.tensors)} tensors, and {len(data)} are given",
                location=here(),
            )
        for number, (declared, given) in enumerate(zip(self.tensors.values(), data, strict=True)):
            wanted = (tuple(map(int, declared.shape)), declared.dtype)
            extents, dtype = kind_of(given)
            if dtype != wanted[1] or math.prod(extents) != math.prod(wanted[0]):
                raise GraphError(
                    f"{self.name}: tensor {number + 1} was declared as {wanted[1]}"
                    f" {list(wanted[0])}, and the data are {dtype} {list(extents)}",
                    location=here(),
                )
        by_name = dict(zip(self.tensors, data, strict=True))
        # As many elements lie in the same order, whatever axes the data have.
        arrays = {
            name: array_of(a).reshape(tuple(map(int, self.tensors[name].shape)))
            for name, a in by_name.items()
        }
        results = run_program(self.program, arrays)
        for name, output in self.program.written.items():
            target = by_name[name]
            copy_to(target, results[output].reshape(kind_of(target)[0]))
        check_goldens(by_name, options_of("verify"))


def function(traced: Callable[..., Any] | str, *tensors: Any) -> Any:
    """Mark a helper of programs, which is traced where it is called; or begin a block.

    `with pypto.function("MAIN", x, y):` traces the block that follows over declared tensors.
    """
    if not isinstance(traced, str):
        return traced
    return Block(traced, tensors)


def run_last_block(*data: Any) -> None:
    """Run the block that was traced last on data, in the order in which it names its tensors.

    Raises:
        GraphError: no block was traced, or the data are others than it declares.
    """
    if not _traced_last:
        raise GraphError(
            "no block was traced that could be run",
            location=here(),
            help='with pypto.function("MAIN", x, y): traces one',
        )
    _traced_last[-1].run(data)
