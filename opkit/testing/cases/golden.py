"""A project's own reference functions, read from its golden.py without importing its package.

golden.py has one function per operator, named like it, from wide NumPy arrays (float64 for floats,
int64 for whole numbers) and keyword attributes to an array, or a tuple of them. Where inputs have
different shapes it also has `<operator>_input_shapes(shape) -> dict`, from the main shape to the
shapes of the inputs that differ from it, or one `input_shapes(shape)` for all its operators; where
inputs say places along an axis, `<operator>_input_limits(shape)` says how many places there are.
`<operator>_same_precision`, of float32 arrays (16-bit inputs are widened), is the second reference
of the standards that measure errors by another implementation's; formulas have one without it.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from opkit.errors import OperatorError, UsageError
from opkit.processes import TooLong, alarm_after
from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases.cases import RuleWithLimits, Shape, ShapeRule
from opkit.testing.numbers import Array, Input

__all__ = ["Golden", "as_outputs", "is_unsaid", "load_function", "load_golden"]


@dataclass(frozen=True)
class Golden:
    """The functions of one golden.py."""

    path: Path
    module: ModuleType

    def has(self, kernel: str) -> bool:
        """Whether it has a reference for an operator."""
        return callable(getattr(self.module, kernel, None))

    def shape_rule(self, spec: OpSpec) -> ShapeRule | None:
        """Return the operator's rule for input shapes, None if every input has the main shape."""
        own = f"{spec.name}_input_shapes"
        name = own if hasattr(self.module, own) else "input_shapes"
        function = getattr(self.module, name, None)
        if not callable(function):
            return None
        inputs = {tensor.name for tensor in spec.inputs}

        def rule(shape: Shape) -> Mapping[str, Shape]:
            shapes = self._rule(name, function, shape)
            if not isinstance(shapes, Mapping):
                raise OperatorError(
                    f"{self.path}: {name} returned {shapes!r}, expected a dict of shapes"
                )
            # The rule for all operators may speak of inputs that this one does not have.
            return shapes if name == own else {key: shapes[key] for key in shapes if key in inputs}

        places = getattr(self.module, f"{spec.name}_input_limits", None)
        if not callable(places):
            return rule

        def limits(shape: Shape) -> Mapping[str, int]:
            found = self._rule(f"{spec.name}_input_limits", places, shape)
            if not isinstance(found, Mapping):
                raise OperatorError(
                    f"{self.path}: {spec.name}_input_limits returned {found!r}, expected a dict"
                )
            return found

        return RuleWithLimits(rule, limits)

    def has_second(self, kernel: str) -> bool:
        """Whether it has a second reference, of the operator's own precision."""
        return self.has(f"{kernel}_same_precision")

    def reference(
        self, kernel: str, inputs: Sequence[Input], *, attrs: Mapping[str, AttrValue]
    ) -> tuple[Array, ...]:
        """Return the operator's outputs for wide inputs.

        Raises:
            OperatorError: the function fails; the message has its own file and line.
        """
        with np.errstate(all="ignore"):
            result = self._call(getattr(self.module, kernel), tuple(inputs), dict(attrs))
        return as_outputs(result)

    def second(
        self, kernel: str, inputs: Sequence[Input], *, attrs: Mapping[str, AttrValue]
    ) -> tuple[Array, ...]:
        """Return the outputs of `<kernel>_same_precision`; as `reference`, from float32 inputs."""
        return self.reference(f"{kernel}_same_precision", inputs, attrs=attrs)

    def _rule(self, name: str, function: Callable[..., object], shape: Shape) -> object:
        try:
            with alarm_after(_RULE_SECONDS):
                return self._call(function, (shape,), {})
        except TooLong as error:
            raise OperatorError(
                f"{self.path}: {name}{shape} gives no result after {_RULE_SECONDS:g} s",
                help="look for endless loops in it",
            ) from error

    def _call(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        named: dict[str, object],
    ) -> object:
        try:
            return function(*arguments, **named)
        # A golden that calls sys.exit would end the run, and with 0 look like success.
        except (Exception, SystemExit) as error:
            raise _failed(self.path, error) from error


def as_outputs(result: object) -> tuple[Array, ...]:
    """Return what a reference gave, one output or several, as arrays; lists of arrays flat."""
    if not isinstance(result, (tuple, list)):
        return (np.asarray(result),)
    flat: list[Array] = []
    for output in result:
        is_list = isinstance(output, (tuple, list)) and any(hasattr(a, "shape") for a in output)
        flat += as_outputs(output) if is_list else [np.asarray(output)]
    return tuple(flat)


def is_unsaid(output: Array) -> bool:
    """Whether a reference gave None for an output: it says nothing of it."""
    return output.dtype == object and output.shape == () and output.item() is None


def load_function(name: str, folder: Path) -> Callable[..., object]:
    """Return the function that `FILE.py:FUNCTION` names, FILE relative to a folder.

    Raises:
        UsageError: there is no such file, or no such function in it.
        OperatorError: the file does not load.
    """
    file, _, function_name = name.rpartition(":")
    loaded = load_golden(folder / file) if file else None
    if loaded is None:
        raise UsageError(f'"{name}": there is no {folder / file}', help="write FILE.py:FUNCTION")
    function = getattr(loaded.module, function_name, None)
    if not callable(function):
        raise UsageError(f'{folder / file} has no function "{function_name}"')
    found: Callable[..., object] = function
    return found


_RULE_SECONDS = 60.0
"""What a rule for the shapes of inputs may take."""
_LOAD_SECONDS = 120.0
"""What a golden.py may take to load; it may import torch on a busy machine."""


def load_golden(path: Path) -> Golden | None:
    """Return the references in a golden.py, or None where there is no such file.

    Raises:
        OperatorError: the file does not load.
    """
    if not path.is_file():
        return None
    name = f"_opkit_{path.stem}_{path.parent.name}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    try:
        with alarm_after(_LOAD_SECONDS):
            module_spec.loader.exec_module(module)
    except TooLong as error:
        raise OperatorError(
            f"{path}: it is not loaded after {_LOAD_SECONDS:g} s",
            help="let functions do what takes long",
        ) from error
    except (Exception, SystemExit) as error:
        raise _failed(path, error) from error
    return Golden(path, module)


def _failed(path: Path, error: Exception | SystemExit) -> OperatorError:
    """Return the user's own error, at the last line of golden.py that it went through."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path
    ]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = f"{path}:{line}" if line is not None else str(path)
    if isinstance(error, SystemExit):
        return OperatorError(
            f"{where}: it calls sys.exit({error.code!r})",
            help="return the result, or raise an exception",
        )
    return OperatorError(f"{where}: {type(error).__name__}: {error}")
