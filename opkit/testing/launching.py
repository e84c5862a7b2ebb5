"""Launching a case: what is given to the operator beside its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases import Case, is_unsaid, make_inputs, output_tensors
from opkit.testing.numbers import Array, Input
from opkit.testing.references import find_reference

__all__ = ["Launch", "Library", "is_prototype", "launch_of"]


class Library(Protocol):
    """What runs an operator: `opkit.runtime.open(artifact_folder)`."""

    def run(
        self,
        op_type: str,
        inputs: Sequence[Input],
        attrs: Mapping[str, AttrValue],
        *,
        dtypes: Sequence[str],
        out_shape: Sequence[Sequence[int] | None] | None = None,
        out_dtype: Sequence[str | None] | None = None,
    ) -> list[Array]:
        """Return the outputs; bfloat16 is uint16 where `dtypes` says so.

        What `out_shape` and `out_dtype` say counts for outputs that the operator does not infer.
        """
        ...


@dataclass(frozen=True)
class Launch:
    """A case ready to be launched, any number of times."""

    case: Case
    spec: OpSpec
    inputs: list[Input]
    shapes: list[tuple[int, ...] | None] | None
    """Shapes of the outputs, where the operator may not infer them."""

    def __call__(self, library: Library) -> list[Array]:
        """Return the outputs.

        Raises:
            UsageError, SetupError, KernelFault: as `opkit.runtime.Library.run`.
        """
        case = self.case
        names = [dtype.name for dtype in case.dtypes[: len(self.inputs)]]
        if self.shapes is None:
            return library.run(case.op, self.inputs, dict(case.attrs), dtypes=names)
        types = [dtype.name for _, dtype in output_tensors(case, self.spec)]
        return library.run(
            case.op,
            self.inputs,
            dict(case.attrs),
            dtypes=names,
            out_shape=self.shapes,
            out_dtype=types,
        )


def launch_of(case: Case, spec: OpSpec) -> Launch:
    """Return a case with its inputs, ready to be launched.

    Raises:
        OpkitError: its inputs cannot be made, or its reference fails.
    """
    inputs = make_inputs(case)
    return Launch(case, spec, inputs, _shapes_of_outputs(case, spec, inputs))


def _shapes_of_outputs(
    case: Case, spec: OpSpec, inputs: Sequence[Input]
) -> list[tuple[int, ...] | None] | None:
    """Return the shapes that the reference's outputs have, for operators that infer none.

    None of an output that it says nothing of; None where they say it themselves, as those of
    prototypes do, or where it is not known.
    """
    if is_prototype(spec) or case.expects_failure or not case.golden:
        return None
    reference = find_reference(case, spec, None, wants_second=False)
    assert reference is not None
    outputs, _ = reference.whole(inputs)
    is_whole = len(outputs) == len(output_tensors(case, spec))
    shapes = [None if is_unsaid(output) else output.shape for output in outputs]
    return shapes if is_whole else None


def is_prototype(spec: OpSpec) -> bool:
    """Whether an operator is described by a prototype; else an OpDef is all that there is."""
    return spec.source.suffix == ".json"
