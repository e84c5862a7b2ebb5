"""`@pypto.jit`: a Python function, traced once for each kind of arguments, then run as kernels."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from opkit import compiler
from opkit.compiler import Graph, GraphBuilder, GraphError, Location, Tensor
from opkit.errors import OpkitError

# Functions of tensors register themselves.
from . import functions  # noqa: F401
from .annotations import check_annotation
from .building import building
from .diagnostics import check_backward, undefined_name
from .location import here
from .settings import OPTION_GROUPS, TakesOptions, options, options_of, refuse_unknown
from .traced import Traced
from .verification import check_goldens

__all__ = [
    "Function",
    "Program",
    "array_of",
    "copy_to",
    "finished",
    "jit",
    "kernel_name",
    "kind_of",
    "run_kernels_only",
    "run_program",
]


@dataclass
class Program:
    """One function for arguments of certain shapes and data types."""

    graph: Graph | None
    """None where it computes nothing: it returns an argument, or nothing."""
    returned: Any
    """The result, with the names of outputs and arguments in place of arrays."""
    written: Mapping[str, str]
    """Output by the argument that it is written to."""
    inputs: tuple[str, ...]
    """The arguments that the graph reads."""
    compiled: compiler.Compiled | None = None
    reason: str = ""
    """Why it runs in NumPy; empty where kernels run."""
    elements: Mapping[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    """Elements of arguments that the trace read as numbers: the program holds for these only."""

    @property
    def runs_in(self) -> str:
        """`kernels`, or `numpy` where opkit has no kernels for it yet."""
        return "kernels" if self.compiled is not None else "numpy"


@dataclass(frozen=True)
class _Place:
    """Where a result goes: an output of the graph, or an argument as it was given."""

    name: str
    is_argument: bool
    dtype: str = ""
    """Data type of an output."""


@dataclass
class _Arguments:
    """The arrays among a call's arguments by name, and the arguments with names in their place."""

    arrays: dict[str, Any] = field(default_factory=dict)
    shape: list[object] = field(default_factory=list)
    """What decides on the program besides: shapes, types, and numbers as they are."""


class Function(TakesOptions):
    """A function that @pypto.jit marks; call it with NumPy arrays or torch tensors on the CPU."""

    def __init__(self, traced: Callable[..., Any], options: Mapping[str, object]) -> None:
        functools.update_wrapper(self, traced)
        self._function = traced
        self._signature = inspect.signature(traced)
        self._programs: dict[str, list[Program]] = {}
        self.options = dict(options)
        self.last: Program | None = None
        """The program of the last call."""

    def __repr__(self) -> str:
        return f"<pypto function {self._function.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arrays; inside of another program, become part of it.

        Raises:
            GraphError: the program is wrong, at its line.
        """
        if _has_traced((args, kwargs)):
            return self._function(*args, **kwargs)
        check_backward()
        bound, arguments = self._bind(args, kwargs)
        arrays = {name: array_of(a) for name, a in arguments.arrays.items()}
        known = self._programs.setdefault(repr(arguments.shape), [])
        program = next((each for each in known if _holds(each, arrays)), None)
        if program is None:
            program = self._trace(bound, arguments, arrays)
            known.append(program)
        self.last = program
        results = run_program(program, arrays)
        for name, output in program.written.items():
            copy_to(arguments.arrays[name], results[output])
        verify = {**options_of("verify"), **self.options.get("verify_options", {})}
        check_goldens(arguments.arrays, verify)
        tensors = (a for a in arguments.arrays.values() if type(a).__module__ == "torch")
        device = next((tensor.device for tensor in tensors), None)
        return _filled(program.returned, results, arguments.arrays, device)

    def trace(self, *args: Any, **kwargs: Any) -> Program:
        """Return the program for arguments like these, without running it."""
        bound, arguments = self._bind(args, kwargs)
        return self._trace(
            bound, arguments, {name: array_of(a) for name, a in arguments.arrays.items()}
        )

    def _bind(self, args: Any, kwargs: Any) -> tuple[inspect.BoundArguments, _Arguments]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as err:
            raise GraphError(f"{self._function.__name__}: {err}", location=here()) from err
        bound.apply_defaults()
        arguments = _Arguments()
        for name, value in bound.arguments.items():
            bound.arguments[name] = _flatten(name, value, arguments)
            check_annotation(self._function, name, value)
        return bound, arguments

    def _trace(
        self, bound: inspect.BoundArguments, arguments: _Arguments, arrays: Mapping[str, Any]
    ) -> Program:
        builder = GraphBuilder(kernel_name(self._function.__name__))
        tensors = {}
        elements: dict[tuple[str, tuple[int, ...]], int] = {}

        def reader(name: str) -> Callable[[tuple[int, ...]], int]:
            def read(place: tuple[int, ...]) -> int:
                return elements.setdefault((name, place), int(arrays[name][place]))

            return read

        for name, array in arguments.arrays.items():
            shape, dtype = kind_of(array)
            is_whole = dtype in ("int32", "int64")
            tensors[name] = Traced(
                builder,
                builder.input(name, shape, dtype),
                element=reader(name) if is_whole else None,
            )
            tensors[name].name = name
        groups = {f"{group}_options" for group in OPTION_GROUPS}
        given = {k: v for k, v in self.options.items() if k in groups and isinstance(v, Mapping)}
        with building(builder), options(**given):
            try:
                result = self._function(*_with(bound.args, tensors), **_with(bound.kwargs, tensors))
            except NameError as err:
                raise undefined_name(err) from err
            code = self._function.__code__
            place = Location(code.co_filename, code.co_firstlineno)
            name = self._function.__name__
            program = finished(builder, tensors, result, name, place)
            return replace(program, elements=elements)


def finished(
    builder: GraphBuilder,
    tensors: Mapping[str, Traced],
    result: Any,
    name: str,
    place: Location | None,
) -> Program:
    """Return the program of what was traced, compiled.

    Args:
        tensors: the arguments by name.
        result: what the traced function returned; None of a block.
        place: where the program stands.
    Raises:
        GraphError: it returns nothing and writes to no argument.
    """
    names = {id(tensor): argument for argument, tensor in tensors.items()}
    written: dict[str, str] = {}
    for argument, tensor in tensors.items():
        if tensor.is_written:
            written[argument] = f"{argument}_out"
            builder.output(written[argument], tensor.value)
    count = 0

    def placed(value: Any) -> Any:
        nonlocal count
        if isinstance(value, Traced):
            if id(value) in names:
                return _Place(names[id(value)], is_argument=True)
            count += 1
            builder.output(f"result{count}", value.whole_value)
            return _Place(f"result{count}", is_argument=False, dtype=value.dtype)
        if isinstance(value, dict):
            return {key: placed(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return _like(value, [placed(each) for each in value])
        return value

    returned = placed(result)
    if not written and result is None:
        raise GraphError(
            f"{name} returns nothing and writes to none of its arguments",
            location=place,
            help="return the result, or write it: out[:] = result, pypto.assemble(..., out)",
        )
    if not written and count == 0:
        return Program(None, returned, written, ())
    graph = builder.graph()
    used = {name for node in graph.nodes for name in node.inputs}
    used |= {tensor for _, tensor in graph.outputs}
    inputs = tuple(_narrowed(graph, t) for t in graph.inputs if t.name in used)
    graph = Graph(graph.name, inputs, graph.nodes, graph.outputs, graph.attributes)
    program = Program(graph, returned, written, tuple(t.name for t in inputs))
    _compile(program)
    return program


def _holds(program: Program, arrays: Mapping[str, Any]) -> bool:
    """Return whether arguments have the elements that a program was traced for."""
    return all(int(arrays[name][at]) == each for (name, at), each in program.elements.items())


def _narrowed(graph: Graph, tensor: Tensor) -> Tensor:
    """Return an input that only says places as int32, which the chip's kernels count in."""
    users = graph.users[tensor.name]
    is_place = tensor.dtype == "int64" and all(
        node.operator == "cast" and node.output.dtype == "int32" for node in users
    )
    is_kept = all(name != tensor.name for _, name in graph.outputs)
    return replace(tensor, dtype="int32") if is_place and is_kept else tensor


def _as_declared(array: Any, tensor: Tensor) -> Any:
    if tensor.dtype != "int32" or str(array.dtype) == "int32":
        return array
    narrow = array.astype("int32")
    if (narrow != array).any():
        raise GraphError(f'"{tensor.name}" holds places beyond 2**31', location=here())
    return narrow


# Element by element programs are for NumPy: a kernel's text grows with them.
_MOST_ELEMENTS = 400
# What is compiled grows with the operators that differ; rounds of a loop share their kernels.
_MOST_DIFFERENT = 400
# Rounds that cannot be joined are launches still.
_MOST_OPERATORS = 4000
_APART = compiler.Choices(fusion="none")


def _too_long(graph: Graph) -> str:
    """Return why no kernels are made of a graph; empty where they are."""
    single = sum(node.output.size == 1 and bool(node.output.shape) for node in graph.nodes)
    if single > _MOST_ELEMENTS:
        return f"{single} operators of one element each: no kernel pays for them"
    different = {(n.operator, n.location, n.output.shape, n.output.dtype) for n in graph.nodes}
    if len(different) > _MOST_DIFFERENT:
        return f"{len(different)} different operators: too many kernels"
    count = len(graph.nodes)
    return f"{count} operators: too many launches" if count > _MOST_OPERATORS else ""


def _compile(program: Program) -> None:
    from opkit import runtime

    graph = program.graph
    assert graph is not None
    chip = runtime.configuration().chip
    joined = compiler.join_rounds(graph)
    # Where there is no kernel for all rounds at once there may be one for each, and where
    # operators of many rounds do not fit into one kernel each may be its own.
    tries = [(joined, None), (graph, None), (joined, _APART)]
    for each, choices in tries if joined is not graph else tries[1:]:
        reason = _too_long(each)
        if not reason:
            try:
                rounded = compiler.round_each(each)
                program.compiled = compiler.compile(rounded, chip=chip, choices=choices)
            except GraphError as err:
                reason = str(err)
            else:
                program.reason = ""
                return
        program.reason = program.reason or reason


_kernels_only = False


def run_kernels_only() -> None:
    """From now on have programs refused in this process that NumPy would run (OpkitError)."""
    global _kernels_only
    _kernels_only = True


def run_program(program: Program, arrays: Mapping[str, Any]) -> dict[str, Any]:
    graph = program.graph
    if graph is None:
        return {}
    given = {tensor.name: _as_declared(arrays[tensor.name], tensor) for tensor in graph.inputs}
    if program.compiled is not None:
        import numpy as np

        try:
            whole = {name: np.asarray(array, order="C") for name, array in given.items()}
            return program.compiled.run(whole, {})
        except GraphError as err:
            # The compiler has no kernel for some operator: said by Program.reason, never silently.
            program.compiled, program.reason = None, str(err)
    if _kernels_only:
        where = f": {program.reason}" if program.reason else ""
        raise OpkitError(f"opkit has no kernels for the program, which would run in NumPy{where}")
    rounded = compiler.round_each(graph)
    values = compiler.run_graph(rounded, given)
    return {
        name: compiler.to_storage(values[tensor], rounded.tensors[tensor].dtype)
        for name, tensor in rounded.outputs
    }


# What else the public project's compiler is told of.
_COMPILER_OPTIONS = ("create_new_logical_tensor", "infer_controlflow_shape", "new_ir")


def jit(
    traced: Callable[..., Any] | None = None,
    *,
    fusion: bool = True,
    unroll_factor: int = 1,
    **further: object,
) -> Any:
    """Mark a function as a program.

    Args:
        fusion: whether operators share kernels; they always do, where they can.
        unroll_factor: how many rounds of a loop are written out; a traced loop is, all of it.
        further: the public project's `host_options`, `runtime_options` and so on; they change how
            a program is run, never what it gives.
    """
    known = sorted((*(f"{group}_options" for group in OPTION_GROUPS), *_COMPILER_OPTIONS))
    refuse_unknown("jit has no option", further, ("fusion", "unroll_factor", *known))
    given = {"fusion": fusion, "unroll_factor": unroll_factor, **further}
    if traced is None:
        return lambda each: Function(each, given)
    return Function(traced, given)


def kernel_name(name: str) -> str:
    """Return a function's name as C++ takes it: lambdas have none, and some are C++'s own words."""
    return "".join(each if each.isalnum() else "_" for each in name).strip("_") + "_program"


def _flatten(path: str, value: Any, found: _Arguments) -> Any:
    """Return a value with places instead of arrays, which `found` collects."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        found.arrays[path] = value
        found.shape.append((path, *kind_of(value)))
        return _Place(path, is_argument=True)
    if isinstance(value, dict):
        return {key: _flatten(f"{path}_{key}", each, found) for key, each in value.items()}
    if isinstance(value, list | tuple):
        parts = [_flatten(f"{path}_{at}", each, found) for at, each in enumerate(value)]
        return _like(value, parts)
    found.shape.append((path, value))
    return value


def kind_of(array: Any) -> tuple[tuple[int, ...], str]:
    name = str(array.dtype).rpartition(".")[2]
    return tuple(int(extent) for extent in array.shape), name


def _with(value: Any, tensors: Mapping[str, Traced]) -> Any:
    if isinstance(value, _Place):
        return tensors[value.name]
    if isinstance(value, dict):
        return {key: _with(each, tensors) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return _like(value, [_with(each, tensors) for each in value])
    return value


def _filled(
    value: Any, results: Mapping[str, Any], arguments: Mapping[str, Any], device: Any
) -> Any:
    """Return a result with arrays in its places; tensors of a device, if there is one."""
    if isinstance(value, _Place):
        if value.is_argument:
            return arguments[value.name]
        result = results[value.name]
        return result if device is None else _torch_tensor(result, value.dtype).to(device)
    if isinstance(value, dict):
        return {k: _filled(v, results, arguments, device) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return _like(value, [_filled(v, results, arguments, device) for v in value])
    return value


def _like(value: Any, parts: list[Any]) -> Any:
    """Return a list or tuple of the same type with other elements."""
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _has_traced(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_traced(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_has_traced(each) for each in value)
    return isinstance(value, Traced)


def array_of(value: Any) -> Any:
    """Return the memory of an argument as an array; a bfloat16 tensor's as uint16."""
    if type(value).__module__ != "torch":
        return value
    value = _on_host(value.detach())
    if str(value.dtype) == "torch.bfloat16":
        return value.contiguous().view(_torch().uint16).numpy()
    return value.contiguous().numpy()


def _on_host(tensor: Any) -> Any:
    """Return a tensor's own memory as a tensor of the CPU; the emulated device's is the host's."""
    if tensor.device.type == "cpu":
        return tensor
    return _torch().ops.opkit_npu.as_cpu(tensor)


def _torch_tensor(array: Any, dtype: str) -> Any:
    torch = _torch()
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _torch() -> Any:
    """Return torch, which whoever passes its tensors has loaded."""
    return sys.modules["torch"]


def copy_to(target: Any, values: Any) -> None:
    if type(target).__module__ != "torch":
        target[...] = values
        return
    torch = _torch()
    given = torch.from_numpy(values)
    target = _on_host(target.detach())
    with torch.no_grad():
        target.copy_(given.view(torch.bfloat16) if target.dtype == torch.bfloat16 else given)
