"""A kept version, loaded in this process: its kernels, and its reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from opkit import runtime
from opkit.dtypes import find_dtype
from opkit.errors import OperatorError, PrecisionError, SetupError, UsageError
from opkit.service.energy import energy_uj
from opkit.service.interface import Interface, Parameter
from opkit.service.sources import DESCRIPTION, GOLDEN_MODEL, MODEL
from opkit.service.workers.arguments import Attributes, Inputs, Rule
from opkit.service.workers.closeness import MODEL_TOLERANCE, far_off
from opkit.service.workers.model_file import ModelFile, ModelReference
from opkit.service.workers.modelled import Modelled
from opkit.service.workers.shared_memory import Tensor

__all__ = [
    "Loaded",
    "Reference",
    "has_odd_values",
    "load",
    "load_reference",
    "modelled_time",
]

_Array = npt.NDArray[Any]

# Bits of the exponent: all set in infinities and NaN.
_EXPONENTS = {"float16": 0x7C00, "bfloat16": 0x7F80}


class Loaded(Protocol):
    """What runs a version's calls."""

    interface: Interface

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        """Return the outputs; fresh arrays."""
        ...


class Reference(Protocol):
    """What computes a version's outputs on the CPU, and judges others'."""

    interface: Interface
    """Interface of the version that it came with."""

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        """Return the outputs as their data types store them."""
        ...

    def judge(
        self, inputs: Inputs, attributes: Attributes, outputs: Sequence[Tensor], rule: Rule
    ) -> str:
        """Return why outputs are wrong; "" where they are right."""
        ...


def load(folder: Path, *, threads: int = 1) -> Loaded:
    """Load a kept version's kernels; compiles those of a program.

    Raises:
        OpkitError: it cannot be loaded.
    """
    described = json.loads((folder / DESCRIPTION).read_bytes())
    if described["kind"] == "operator":
        interface = Interface.from_json(described["interface"])
        runtime.configure(interface.chip, threads=threads)
        return _Operator(folder, interface)
    runtime.configure(threads=threads)
    if described["kind"] == "model":
        return ModelFile(folder / MODEL, described["name"])
    return _Program(folder, described)


def load_reference(folder: Path) -> Reference:
    """Load a kept version's reference.

    Raises:
        OpkitError: it has none, or it does not load.
    """
    described = json.loads((folder / DESCRIPTION).read_bytes())
    if described["kind"] == "program":
        return _ProgramReference(folder, described)
    if not described["golden"]:
        raise UsageError(f"{folder} has no golden.py")
    interface = Interface.from_json(described["interface"])
    if described["golden"] == GOLDEN_MODEL:
        return ModelReference(folder / GOLDEN_MODEL, interface)
    return _GoldenReference(folder / "golden.py", described["golden"], interface)


def modelled_time(loaded: Loaded, inputs: Inputs, attributes: Attributes) -> Modelled:
    """Return what a call takes on the modelled chip: all its launches together."""
    from opkit.profiling import Profile

    with Profile(event_limit=0) as session:
        loaded.run(inputs, attributes)
    timelines = session.timelines
    if not timelines:
        return Modelled(0.0, None, 0.0)
    longest = max(timelines, key=lambda timeline: timeline.task_us)
    return Modelled(
        sum(timeline.task_us for timeline in timelines),
        longest.band_percent(),
        sum(energy_uj(timeline) for timeline in timelines),
    )


def has_odd_values(tensors: Sequence[Tensor]) -> bool:
    """Whether a NaN or an infinity is among them."""
    for array, dtype in tensors:
        exponent = _EXPONENTS.get(dtype)
        if exponent is not None:
            # Half the time of isfinite, which widens 16-bit floats.
            bits = array.view(np.uint16) & np.uint16(exponent)
            if bits.size and int(bits.max()) == exponent:
                return True
        elif array.dtype.kind == "f" and not bool(np.isfinite(array).all()):
            return True
    return False


class _Operator:
    """An operator of an artifact folder."""

    def __init__(self, folder: Path, interface: Interface) -> None:
        self.interface = interface
        self._library = runtime.open(folder / "content")

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        arrays, names = _split(inputs)
        found = self._library.run(self.interface.op, arrays, attributes, names)
        wanted = self.interface.output_dtypes(names)
        if wanted is None or len(wanted) != len(found):
            return [(array, array.dtype.name) for array in found]
        return list(zip(found, wanted, strict=True))


class _Program:
    """A tensor program, compiled for the default chip."""

    def __init__(self, folder: Path, described: Mapping[str, Any]) -> None:
        from opkit import compiler

        graph = compiler.load_program(folder / "program.py", described["function"])
        self._compiled = compiler.compile(graph).load()
        self.interface = _interface_of(graph, self._compiled.stages.chip.name)

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        arrays, _ = _split(inputs)
        found = self._compiled(*arrays, **attributes)
        outputs = found if isinstance(found, tuple) else (found,)
        dtypes = self.interface.variants[0][len(self.interface.inputs) :]
        return [(np.asarray(a), dtype) for a, dtype in zip(outputs, dtypes, strict=True)]


class _GoldenReference:
    """A function of a golden.py."""

    def __init__(self, path: Path, name: str, interface: Interface) -> None:
        from opkit.testing import load_golden

        golden = load_golden(path)
        if golden is None or not golden.has(name):
            raise UsageError(f"{path} has no function {name}", help="name it: golden.py:FUNCTION")
        self._golden = golden
        self._name = name
        self.interface = interface

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        from opkit.testing import in_single_precision, narrow, widen_input

        rows = [find_dtype(_dtype_of(value) or "float32") for value in inputs]
        wide = [
            widen_input(_arrays(value), row)
            for value, row in zip(inputs, rows, strict=True)
            if row is not None
        ]
        attrs = {name: in_single_precision(value) for name, value in attributes.items()}
        outputs = self._golden.reference(self._name, wide, attrs=attrs)
        found: list[Tensor] = []
        for output, name in zip(outputs, self._output_dtypes(inputs), strict=True):
            row = find_dtype(name)
            assert row is not None
            found.append((np.asarray(narrow(output, row), order="C"), row.name))
        return found

    def judge(
        self, inputs: Inputs, attributes: Attributes, outputs: Sequence[Tensor], rule: Rule
    ) -> str:
        tolerance = rule.tolerance
        if tolerance is None and self.interface.shapes:
            tolerance = MODEL_TOLERANCE
        if tolerance is not None:
            return far_off(outputs, self.run(inputs, attributes), tolerance)
        names = [_dtype_of(value) or "float32" for value in inputs]
        golden = getattr(self._golden.module, self._name)
        return _judged(golden, inputs, names, attributes, outputs, rule.standard)

    def _output_dtypes(self, inputs: Inputs) -> tuple[str, ...]:
        if self.interface.shapes:
            # A model file converts its inputs.
            return self.interface.variants[0][len(self.interface.inputs) :]
        found = self.interface.output_dtypes([_dtype_of(value) for value in inputs])
        if found is None:
            raise UsageError(
                f"{self.interface.op} takes none of these data types",
                help="; ".join(", ".join(row) for row in self.interface.variants),
            )
        return found


class _ProgramReference:
    """A tensor program in NumPy, in float64."""

    def __init__(self, folder: Path, described: Mapping[str, Any]) -> None:
        from opkit import compiler

        self._graph = compiler.load_program(folder / "program.py", described["function"])
        self.interface = _interface_of(self._graph, "")

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        from opkit.compiler import to_storage

        arrays, _ = _split(inputs)
        outputs = self._wide(arrays, attributes)
        dtypes = self.interface.variants[0][len(self.interface.inputs) :]
        return [
            (np.asarray(to_storage(output, dtype), order="C"), dtype)
            for output, dtype in zip(outputs, dtypes, strict=True)
        ]

    def judge(
        self, inputs: Inputs, attributes: Attributes, outputs: Sequence[Tensor], rule: Rule
    ) -> str:
        if rule.tolerance is not None:
            return far_off(outputs, self.run(inputs, attributes), rule.tolerance)

        def golden(*wide: Any, **named: Any) -> Any:
            return self._wide(wide, named)

        names = list(self.interface.variants[0][: len(inputs)])
        return _judged(golden, inputs, names, attributes, outputs, rule.standard)

    def _wide(self, arrays: Sequence[Any], attributes: Attributes) -> tuple[_Array, ...]:
        from opkit.compiler import run_graph

        graph = self._graph
        if len(arrays) != len(graph.inputs):
            raise UsageError(f"{graph.name} takes {len(graph.inputs)} arrays, not {len(arrays)}")
        given = {tensor.name: array for tensor, array in zip(graph.inputs, arrays, strict=True)}
        values = run_graph(graph, given, attributes)
        return tuple(np.asarray(values[name]) for _, name in graph.outputs)


def _judged(
    golden: Callable[..., object],
    inputs: Inputs,
    names: Sequence[str],
    attributes: Attributes,
    outputs: Sequence[Tensor],
    standard: str,
) -> str:
    from opkit.testing import assert_outputs

    try:
        assert_outputs(
            [array for array, _ in outputs],
            golden,
            [_arrays(value) for value in inputs],
            dtypes=[*names, *(dtype for _, dtype in outputs)],
            attributes=attributes,
            standard=standard,
        )
    except PrecisionError as error:
        return str(error)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise OperatorError(f"the reference fails: {type(error).__name__}: {error}") from error
    return ""


def _interface_of(graph: Any, chip: str) -> Interface:
    inputs = tuple(Parameter(tensor.name) for tensor in graph.inputs)
    outputs = tuple(Parameter(name) for name, _ in graph.outputs)
    dtypes = [tensor.dtype for tensor in graph.inputs]
    dtypes += [graph.tensors[name].dtype for _, name in graph.outputs]
    for dtype in dtypes:
        if find_dtype(dtype) is None:
            raise SetupError(f"{graph.name}: {dtype} is no data type that tensors are sent in")
    return Interface(graph.name, graph.name, inputs, outputs, (tuple(dtypes),), chip)


def _arrays(value: Tensor | list[Tensor] | None) -> Any:
    if isinstance(value, list):
        return [array for array, _ in value]
    return None if value is None else value[0]


def _dtype_of(value: Tensor | list[Tensor] | None) -> str | None:
    if isinstance(value, list):
        return value[0][1] if value else None
    return None if value is None else value[1]


def _split(inputs: Inputs) -> tuple[list[Any], list[str | None]]:
    return [_arrays(value) for value in inputs], [_dtype_of(value) for value in inputs]
