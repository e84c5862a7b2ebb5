"""A program compiled to a library of the machine at hand, and its calls."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from opkit.errors import BuildError, UsageError
from opkit.folders import cache_folder
from opkit.toolchain import find_compiler

from ...calls import FileProgram
from ...ir import Graph, GraphError, Node, evaluate
from ...ops import OPERATORS, heads_shared
from ...passes import FusedGraph, Group, Lowering, lower
from ...tracing import from_storage, to_storage
from ..products import cut_shape
from .loops import HostFunction, storage_type, write_loops
from .prelude import PRELUDE

__all__ = ["HostProgram", "compile_host"]

# What has no loops in C++ is computed by NumPy.
_BY_NUMPY = (
    *("sort", "argsort", "argmax", "argmin", "random_uniform"),
    *("take_along", "put_along", "join_along", "search"),
)
_FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-fopenmp-simd", "-fPIC", "-shared", "-pthread"),
    # Nobody looks at either, and loops with comparisons become vectors'.
    *("-fno-math-errno", "-fno-trapping-math"),
    *("-x", "c++"),
)


def compile_host(graph: Graph) -> HostProgram:
    """Return a program for the machine at hand.

    Raises:
        GraphError: an operator has no C++; at the user's line.
    """
    return HostProgram(graph, lower(graph, Lowering("cpp")))


class HostProgram(FileProgram):
    """A program as plain C++ with threads; called as `Compiled` is."""

    def __init__(self, traced: Graph, fused: FusedGraph) -> None:
        super().__init__(traced, fused)
        self.threads = os.cpu_count() or 1
        self.functions: dict[str, HostFunction] = {}
        for group in fused.groups:
            nodes = group.nodes[1:] if group.kind == "matmul" else group.nodes
            if nodes and group.kind in ("vector", "matmul"):
                outputs = fused.outputs_of(group)
                name = f"{group.name}_loops" if group.kind == "matmul" else group.name
                self.functions[group.name] = write_loops(name, fused, nodes, outputs)

    @cached_property
    def source(self) -> str:
        """The whole C++ file."""
        parts = [PRELUDE.strip(), *(function.text for function in self.functions.values())]
        for group in self.fused.groups:
            if group.kind == "matmul":
                parts.append(self._product_text(group.nodes[0], group.name))
            elif group.kind == "attention":
                parts.append(self._attention_text(group.nodes[0], group.name))
        return "\n\n".join(parts) + "\n"

    @cached_property
    def library(self) -> ctypes.CDLL:
        """The compiled library, from the cache where the same was compiled before.

        Raises:
            BuildError: the compiler rejected the file: opkit's mistake.
        """
        compiler = find_compiler()
        words = "\0".join((*compiler.argv, compiler.identity, _processor(), *_FLAGS, self.source))
        digest = hashlib.sha256(words.encode()).hexdigest()
        path = cache_folder() / "host" / f"{digest}.so"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                built = Path(folder) / "program.so"
                argv = [*compiler.argv, *_FLAGS, "-", "-o", str(built)]
                done = subprocess.run(
                    argv, input=self.source, capture_output=True, text=True, check=False
                )
                if done.returncode != 0:
                    raise BuildError(f"{self.traced.name}.cpp does not compile", log=done.stderr)
                built.replace(path)
        return ctypes.CDLL(str(path))

    def load(self) -> HostProgram:
        """Compile now instead of at the first call."""
        _ = self.library
        return self

    # Running

    def run_group(
        self,
        group: Group,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        """Run one kernel; its results appear in memory."""
        if group.kind == "matmul":
            node = group.nodes[0]
            self._multiply(node, group.name, memory, sizes)
        elif group.kind == "attention":
            self._attend(group.nodes[0], group.name, memory, sizes)
        elif group.kind not in ("vector",):
            for node in group.nodes:
                self._move(node, memory, sizes, scalars)
        function = self.functions.get(group.name)
        if function is None:
            return
        arrays = [self.room(name, memory, sizes) for name in function.tensors]
        if any(self.room(name, memory, sizes).size == 0 for name in self.fused.outputs_of(group)):
            return
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        numbers = [evaluate(each, sizes) for each in function.sizes]
        values = [float(scalars[name]) for name in function.scalars]
        self.library[function.name](
            pointers,
            (ctypes.c_int64 * max(1, len(numbers)))(*numbers),
            (ctypes.c_double * max(1, len(values)))(*values),
            ctypes.c_int(self.threads),
        )

    def _multiply(
        self, node: Node, name: str, memory: dict[str, Any], sizes: Mapping[str, int]
    ) -> None:
        outer = tuple(evaluate(extent, sizes) for extent in node.output.shape[:-2])
        left, right = (_batched(memory[each], outer) for each in node.inputs)
        result = self.room(node.output.name, memory, sizes)
        if result.size == 0:
            return
        shape = cut_shape(node, self.fused.graph, lambda extent: evaluate(extent, sizes))
        numbers = (
            shape.batches,
            0 if shape.left_is_shared else shape.m * shape.k,
            0 if shape.right_is_shared else shape.k * shape.n,
            *(shape.m, shape.n, shape.k),
        )
        self._call(f"{name}_product", [left, right, result], numbers)

    def _product_text(self, node: Node, name: str) -> str:
        left, _ = self.fused.graph.inputs_of(node)
        kind, result = storage_type(left), storage_type(node.output)
        total = {"float64": "double", "int8": "int32_t", "int32": "int64_t"}.get(
            left.dtype, "float"
        )
        flags = ", ".join(
            str(bool(node.settings[key])).lower() for key in ("transpose_a", "transpose_b")
        )
        return (
            f'extern "C" void {name}_product(void* const* t, const int64_t* sizes, int threads)\n'
            f"{{\n    Multiply<{kind}, {total}, {result}>(static_cast<const {kind}*>(t[0]),"
            f" static_cast<const {kind}*>(t[1]), static_cast<{result}*>(t[2]), sizes, {flags},"
            f" threads);\n}}"
        )

    def _attend(
        self, node: Node, name: str, memory: dict[str, Any], sizes: Mapping[str, int]
    ) -> None:
        from ..attention import attention_layout

        def apart(array: Any, is_turned: bool) -> Any:
            return np.swapaxes(array, -3, -2) if is_turned else array

        turned = node.settings.text("turned")
        given: list[Any] = [
            np.ascontiguousarray(apart(memory[each], letter in turned))
            for each, letter in zip(node.inputs, "qkvm", strict=False)
        ]
        given[1:3] = [_for_all_heads(each, given[0].shape[:-2]) for each in given[1:3]]
        shapes, spreads = attention_layout([array.shape for array in given])
        q, k, v, *mask = [
            spread.of(array) if spread is not None else array.reshape(shape)
            for array, shape, spread in zip(given, shapes, spreads, strict=True)
        ]
        room = self.room(node.output.name, memory, sizes)
        if room.size == 0:
            return
        is_turned = "y" in turned
        result = np.empty_like(apart(room, is_turned), order="C") if is_turned else room
        rows, columns = mask[0].shape[-2:] if mask else (1, 0)
        numbers = (
            *(int(np.prod(q.shape[:-2])), q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]),
            0 if int(np.prod(k.shape[:-2])) == 1 else k.shape[-2],
            rows * columns if mask and int(np.prod(mask[0].shape[:-2])) > 1 else 0,
            columns if rows > 1 else 0,
            node.settings.integer("ahead"),
        )
        self._call(f"{name}_attention", [q, k, v, *mask, result], numbers)
        if is_turned:
            room[...] = apart(result, is_turned)

    def _attention_text(self, node: Node, name: str) -> str:
        tensors = self.fused.graph.inputs_of(node)
        kind = storage_type(tensors[0])
        mask = storage_type(tensors[3]) if len(tensors) > 3 else "float"
        width = tensors[0].shape[-1]
        scale = node.settings["scale"]
        if scale is None and not isinstance(width, int):
            raise GraphError("attention over a width of no fixed size", location=node.location)
        factor = float(width) ** -0.5 if scale is None else float(scale)
        given = f"static_cast<const {mask}*>(t[3])" if len(tensors) > 3 else "nullptr"
        operands = ", ".join(f"static_cast<const {kind}*>(t[{i}])" for i in range(3))
        return (
            f'extern "C" void {name}_attention(void* const* t, const int64_t* sizes, int threads)\n'
            f"{{\n    Attend<{kind}, {mask}>({operands}, {given},"
            f" static_cast<{kind}*>(t[{len(tensors)}]), sizes, {factor!r}f,"
            f" {str(bool(node.settings['causal'])).lower()}, threads);\n}}"
        )

    def _call(self, name: str, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        self.library[name](
            pointers, (ctypes.c_int64 * len(numbers))(*numbers), ctypes.c_int(self.threads)
        )

    def _move(
        self,
        node: Node,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        if node.operator in _BY_NUMPY:
            self._compute(node, memory, sizes, scalars)
            return
        arrays = [memory[name] for name in node.inputs]
        result = self.room(node.output.name, memory, sizes)
        settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
        if result.size == 0:
            return
        if node.operator == "take":
            table, indices = arrays
            axis = int(settings["axis"])
            extent = table.shape[axis]
            if indices.size and not (-extent <= indices.min() and indices.max() < extent):
                raise UsageError(f"an index is outside of the {extent} rows of its table")
            for place, index in enumerate(indices.reshape(-1)):
                rows = result.reshape(*table.shape[:axis], -1, *table.shape[axis + 1 :])
                cut = (slice(None),) * axis
                row = int(index) % extent
                here, there = slice(place, place + 1), slice(row, row + 1)
                to, source = (*cut, here), (*cut, there)
                self._copy(rows[to], table[source])
            return
        if node.operator == "arange":
            result[...] = to_storage(np.arange(result.size), node.output.dtype)
        elif node.operator == "transpose":
            self._copy(result, arrays[0].transpose(settings["axes"]))
        elif node.operator == "broadcast_to":
            self._copy(result, np.broadcast_to(arrays[0], result.shape))
        elif node.operator == "slice":
            key = [slice(None)] * arrays[0].ndim
            key[settings["axis"]] = slice(settings["start"], settings["stop"], settings["step"])
            self._copy(result, arrays[0][tuple(key)])
        elif node.operator == "concat":
            begin, axis = 0, settings["axis"]
            for array in arrays:
                cut = (slice(None),) * axis
                region = (*cut, slice(begin, begin + array.shape[axis]))
                self._copy(result[region], array)
                begin += array.shape[axis]
        elif node.operator == "pad":
            result[...] = to_storage(settings["value"], node.output.dtype)
            inside = tuple(
                slice(before, before + extent)
                for (before, _), extent in zip(settings["widths"], arrays[0].shape, strict=True)
            )
            self._copy(result[inside], arrays[0])
        else:
            raise GraphError(f"{node.operator} has no C++", location=node.location)

    def _compute(
        self,
        node: Node,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        tensors = self.fused.graph.tensors
        given = [
            scalars[name] if name in scalars else from_storage(memory[name], tensors[name].dtype)
            for name in node.inputs
        ]
        settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
        value = OPERATORS[node.operator].reference(*given, **settings)
        result = self.room(node.output.name, memory, sizes)
        result[...] = to_storage(value, node.output.dtype)

    def _copy(self, to: Any, source: Any) -> None:
        """Copy one view to another of the same shape, by the library."""
        if to.size == 0:
            return
        shape = to.shape or (1,)
        strides = zip(to.strides or (0,), source.strides or (0,), strict=True)
        axes = [
            number
            for extent, pair in zip(shape, strides, strict=True)
            for number in (extent, *pair)
        ]
        self.library.opkit_move(
            ctypes.c_void_p(to.ctypes.data),
            ctypes.c_void_p(source.ctypes.data),
            (ctypes.c_int64 * len(axes))(*axes),
            ctypes.c_int64(len(shape)),
            ctypes.c_int64(to.itemsize),
            ctypes.c_int(self.threads),
        )


def _processor() -> str:
    """Return what tells a processor from another that lacks some of its instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _batched(matrices: Any, outer: tuple[int, ...]) -> Any:
    own = matrices.shape[:-2]
    if int(np.prod(own)) == 1 or own == outer:
        return matrices
    return np.ascontiguousarray(np.broadcast_to(matrices, (*outer, *matrices.shape[-2:])))


def _bound(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_bound(each, sizes) for each in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return evaluate(value, sizes)


def _for_all_heads(array: Any, outer: tuple[int, ...]) -> Any:
    """Return keys or values with a matrix for each batch of queries, or one for all."""
    shared = heads_shared(outer, array.shape[:-2])
    return _batched(np.repeat(array, shared, axis=-3) if shared > 1 else array, outer)
