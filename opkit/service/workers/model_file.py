"""Model files as versions, and as what other versions' answers are held against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.errors import UsageError
from opkit.service.interface import Interface, Parameter
from opkit.service.workers.arguments import Attributes, Inputs, Rule
from opkit.service.workers.closeness import MODEL_TOLERANCE, far_off, readable
from opkit.service.workers.shared_memory import Tensor

if TYPE_CHECKING:
    from opkit.graph import Context, ModelInput, PlanTensor

__all__ = ["ModelFile", "ModelReference"]


class ModelFile:
    """What `opkit.graph.Model.save` wrote, loaded here."""

    def __init__(self, path: Path, name: str) -> None:
        """Load it.

        Args:
            name: what callers know it by.
        Raises:
            UsageError, SetupError: as `opkit.graph.Engine`.
        """
        from opkit.graph import Engine

        self._engine = engine = Engine(path)
        self._idle: list[Context] = []
        tensors: tuple[ModelInput | PlanTensor, ...] = (*engine.inputs, *engine.outputs)
        self.interface = Interface(
            name,
            name,
            tuple(Parameter(each.name) for each in engine.inputs),
            tuple(Parameter(each.name) for each in engine.outputs),
            (tuple(each.dtype for each in tensors),),
            engine.model.chip,
            tuple(each.shape for each in tensors),
        )

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        """Return the outputs; inputs are converted to what the file's kernels read."""
        if attributes:
            raise UsageError(f'a model file takes no attributes: "{next(iter(attributes))}"')
        arrays = [self._array(index, value) for index, value in enumerate(inputs)]
        try:
            context = self._idle.pop()
        except IndexError:
            # One for each call that is under way at the same time.
            context = self._engine.create_context()
        try:
            found = context.run(arrays)
        finally:
            self._idle.append(context)
        dtypes = self.interface.variants[0][len(self.interface.inputs) :]
        return [_stored(array, dtype) for array, dtype in zip(found, dtypes, strict=True)]

    def _array(self, index: int, value: Tensor | list[Tensor] | None) -> Any:
        if value is None or isinstance(value, list):
            raise UsageError(f"input {index} of a model file is one tensor")
        return readable(value)


class ModelReference:
    """Another model file, such as the float32 one, that says what a model's outputs are."""

    def __init__(self, path: Path, interface: Interface) -> None:
        """Load it.

        Args:
            interface: of the version that it came with.
        Raises:
            UsageError: it is no model file, or has other inputs or outputs.
            SetupError: it cannot be loaded here.
        """
        self._file = ModelFile(path, interface.op)
        mine = self._file.interface
        if mine.shapes != interface.shapes:
            raise UsageError(
                f"its golden takes and returns {mine.shapes_text}, and it {interface.shapes_text}"
            )
        self.interface = interface

    def run(self, inputs: Inputs, attributes: Attributes) -> list[Tensor]:
        """Return the outputs in the data types of the version that it came with."""
        found = self._file.run(inputs, attributes)
        dtypes = self.interface.variants[0][len(self.interface.inputs) :]
        return [_stored(readable(each), d) for each, d in zip(found, dtypes, strict=True)]

    def judge(
        self, inputs: Inputs, attributes: Attributes, outputs: Sequence[Tensor], rule: Rule
    ) -> str:
        """Return which output is farther off than the rule's tolerance, and by how much."""
        limit = MODEL_TOLERANCE if rule.tolerance is None else rule.tolerance
        return far_off(outputs, self._file.run(inputs, attributes), limit)


def _stored(array: Any, dtype: str) -> Tensor:
    """Return an array as a tensor of a data type; fractions are rounded to it."""
    if "float" not in dtype:
        return np.asarray(array).astype(dtype, copy=False), dtype
    from opkit.compiler import to_storage

    return np.asarray(to_storage(np.asarray(array), dtype), order="C"), dtype
