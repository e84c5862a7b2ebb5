"""A pytest plugin: graphs that torch's own tests would run as they were captured are compiled.

Loaded by `dynamo_tests.py`, which says by variables of the environment what to do. A backend of a
test that gives back the graph itself ("eager", a counter, a recorder, a function of the test's own)
has it compiled by opkit instead, and "aot_eager" is opkit's backend; what a test's backend compiles
in a way of its own is left as it is. Each test's outcome is a line of JSON.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from torch import fx

BACKEND, RECORD = "OPKIT_TESTS_BACKEND", "OPKIT_TESTS_RECORD"
SECONDS, EVERY = "OPKIT_TESTS_SECONDS", "OPKIT_TESTS_EVERY"


@dataclass
class Seen:
    """What became of one test's graphs."""

    graphs: int = 0
    """Graphs that a backend gave back as they were."""
    compiled: int = 0
    """Nodes in kernels, of those graphs as AOTAutograd takes them apart."""
    left: int = 0
    """Nodes that torch runs."""


seen = Seen()
_BOXED = ("torch._dynamo.backends.debugging", "torch._functorch._aot_autograd.utils")
"""Where torch's functions are that call a graph with its inputs in a list."""


def is_plain(result: Any, graph: fx.GraphModule) -> bool:
    """Whether running what a backend gave back is running the graph as it is."""
    if result is graph:
        return True
    if isinstance(result, types.MethodType):
        return result.__self__ is graph
    if isinstance(result, types.FunctionType) and result.__module__ in _BOXED:
        held = [cell.cell_contents for cell in result.__closure__ or ()]
        return any(is_plain(each, graph) for each in held if each is not result)
    return False


class Through:
    """A backend of dynamo's whose plain results are compiled."""

    def __init__(self, backend: Callable[..., Any]) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def __call__(self, graph: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
        result = self._backend(graph, inputs, **kwargs)
        if not is_plain(result, graph):
            return result
        seen.graphs += 1
        return whole(graph, inputs) if compiles() else result


def compiles() -> bool:
    return os.environ[BACKEND] == "opkit"


def whole(graph: fx.GraphModule, inputs: Any) -> Any:
    from opkit.graph.backend import opkit, watching

    with watching() as made:
        try:
            return opkit(graph, inputs)
        finally:
            count(made)


def count(made: list[Any]) -> None:
    for each in made:
        seen.compiled += sum(len(segment.translation.nodes) for segment in each.segments)
        seen.left += sum(not each_left.is_view for each_left in each.left)


def _inner(compiler: Callable[..., Any] | None, kind: str) -> Callable[..., Any] | None:
    """Return a compiler of AOTAutograd's graphs whose plain results are compiled."""
    from torch._functorch.aot_autograd import SerializableAOTDispatchCompiler

    if compiler is None or isinstance(compiler, SerializableAOTDispatchCompiler):
        return compiler

    @functools.wraps(compiler)
    def call(graph: fx.GraphModule, inputs: Any, *rest: Any, **kwargs: Any) -> Any:
        result = compiler(graph, inputs, *rest, **kwargs)
        if not is_plain(result, graph):
            return result
        seen.graphs += 1
        if not compiles():
            return result
        from opkit.chips import find_chip
        from opkit.graph.backend import graph_compiler, watching
        from opkit.runtime import configuration

        with watching() as made:
            boxed = graph_compiler(kind, find_chip(configuration().chip))(graph, inputs)
        count(made)
        return boxed if getattr(result, "_boxed_call", False) else lambda *args: boxed([*args])

    return call


def replace_backends() -> None:
    from torch._dynamo.backends import common, debugging
    from torch._dynamo.output_graph import OutputGraph
    from torch._functorch import aot_autograd, compilers

    call_compiler = OutputGraph._call_user_compiler

    def through(self: Any, *args: Any) -> Any:
        backend = self.compiler_fn
        self.compiler_fn = Through(backend)
        try:
            return call_compiler(self, *args)
        finally:
            self.compiler_fn = backend

    OutputGraph._call_user_compiler = through
    call_aot = common.AotAutograd.__call__
    plain = (debugging.boxed_nop, compilers.nop)

    def aot(self: Any, graph: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
        if not compiles() or self.kwargs.get("fw_compiler") not in plain:
            return call_aot(self, graph, inputs, **kwargs)
        seen.graphs += 1
        return whole(graph, inputs)

    common.AotAutograd.__call__ = aot
    compile_stage = aot_autograd.aot_stage2_compile

    def stage(state: Any, capture: Any, partition: Any, *compilers: Any, **kwargs: Any) -> Any:
        return compile_stage(
            state,
            capture,
            partition,
            *map(_inner, compilers, _KINDS),
            **{name: _inner(each, _KINDS_BY_NAME[name]) for name, each in kwargs.items()},
        )

    aot_autograd.aot_stage2_compile = stage


_KINDS_BY_NAME = {
    "fw_compiler": "forward",
    "bw_compiler": "backward",
    "inference_compiler": "inference",
}
_KINDS = tuple(_KINDS_BY_NAME.values())


def record(row: dict[str, Any]) -> None:
    with Path(os.environ[RECORD]).open("a") as file:
        file.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    from opkit.torch_npu import offer

    offer()
    replace_backends()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each n-th test, without those that an earlier process has run, which one ended."""
    path = Path(os.environ[RECORD])
    rows = path.read_text().splitlines() if path.exists() else []
    done = {json.loads(row).get("test") for row in rows}
    every = int(os.environ[EVERY])
    items[:] = [item for item in items[::every] if item.nodeid not in done]


class TooLong(BaseException):
    """Nothing that a test catches."""


@contextlib.contextmanager
def limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global seen
    seen = Seen()
    record({"test": item.nodeid, "outcome": "crashed"})
    item.stash[_BEGAN] = time.monotonic()
    return (yield)


_BEGAN = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limit(int(os.environ[SECONDS])):
        try:
            return (yield)
        except TooLong as error:
            pytest.fail(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        lines = [] if call.excinfo is None else str(call.excinfo.exconly()).splitlines()
        record(
            {
                "test": item.nodeid,
                "outcome": report.outcome,
                "graphs": seen.graphs,
                "compiled": seen.compiled,
                "left": seen.left,
                "seconds": round(time.monotonic() - item.stash[_BEGAN], 1),
                "error": "\n".join(lines)[:1500],
                "where": str(report.longrepr)[-3000:] if report.outcome == "failed" else "",
            }
        )
    return report
