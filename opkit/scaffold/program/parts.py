"""What the templates see of a compiled operator's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opkit import compiler
from opkit.chips import Chip
from opkit.dtypes import DType
from opkit.scaffold.formula import NUMBERS
from opkit.scaffold.identifiers import camel, upper
from opkit.schema import OpSpec

from .lists import ListCopy, input_places, list_copies, output_places
from .variants import Variant

__all__ = ["KernelPart", "Room", "SharePart", "StepPart", "VariantParts", "variant_parts"]


@dataclass(frozen=True)
class SharePart:
    """What one kind of core runs, as the templates see it."""

    kind: str
    """`AIV` or `AIC`."""
    class_name: str
    arguments: str


@dataclass(frozen=True)
class KernelPart:
    """One kernel as the templates see it."""

    key: int
    """The number under which it is chosen: of its step's kernels the first that fits."""
    struct: str
    member: str
    """The tiling data's member that holds its own, where there are several steps."""
    declaration: str
    definition: str
    shares: tuple[SharePart, ...]
    """What each kind of core runs."""
    is_product: bool
    """Whether it runs on cube cores, which its launch counts."""
    takes_all: bool
    """Whether all vector cores that are launched share what it does."""
    schedule: str
    """Schedule of a vector kernel."""
    launch_name: str
    """The host's function that fills its tiling data."""
    launch: str
    type_arguments: str
    """Arguments of that function: bytes of elements whose type it does not know."""


@dataclass(frozen=True)
class StepPart:
    """One step as the templates see it."""

    index: int
    kernels: tuple[KernelPart, ...]
    waits: bool


@dataclass(frozen=True)
class Room:
    """A tensor in the workspace."""

    stem: str
    bytes: str
    """C++ of how many it takes."""


@dataclass(frozen=True)
class VariantParts:
    """The combinations of data types that share a kernel as the templates see them."""

    steps: tuple[StepPart, ...]
    struct: str
    """Structure of the tiling data of all steps, where there are several."""
    workspace: tuple[Room, ...]
    kernel_condition: str
    """For the preprocessor; empty where there is one combination."""
    host_condition: str
    mode: str
    """`vector`, `cube` or `mixed`."""
    uses_object: bool
    type_sizes: Mapping[str, str]
    """The C++ of the bytes of an element of each type parameter, by its name."""
    joined: tuple[ListCopy, ...]
    """The lists that it reads."""
    split: tuple[ListCopy, ...]
    """The lists that it gives."""

    @property
    def is_single(self) -> bool:
        """Whether its kernels have tiling data of their own, and are chosen by key."""
        return len(self.steps) == 1 and self.mode == "vector" and not self.joined

    @property
    def kernels(self) -> tuple[KernelPart, ...]:
        """Kernels of all steps."""
        return tuple(kernel for step in self.steps for kernel in step.kernels)


def variant_parts(
    spec: OpSpec,
    variant: Variant,
    chip: Chip,
    stems: Mapping[str, str],
    *,
    is_one: bool,
    takes_empty: bool,
    is_tuned: bool,
) -> VariantParts:
    """Return the combinations of data types that share a kernel as the templates see them.

    Args:
        spec: the operator.
        variant: its kernels.
        chip: what their tiles are for.
        stems: what the C++ variables of a tensor or attribute start with, by its name.
        is_one: there is no other variant.
        takes_empty: launches of no elements come to the kernels' own tiling.
        is_tuned: tiling takes what `opkit tune` found.
    """
    sizes = {n: compiler.size_parameter(n) for n in compiler.sizes_of(variant.stages.fused)}
    tensors = (*spec.inputs, *spec.outputs)
    given = {t.name: text for t, text in zip(tensors, _descriptions(spec), strict=True)}
    joined, split = list_copies(spec, stems)
    kept = [
        Room(f"room{index}", compiler.bytes_text(tensor, sizes))
        for index, tensor in enumerate(variant.workspace)
    ]
    lists = [
        Room(
            each.room,
            compiler.bytes_text(
                variant.tensor_of(each.name), sizes, element=_element_bytes(given[each.name])
            ),
        )
        for each in (*joined, *split)
    ]
    places = {t.name: room.stem for t, room in zip(variant.workspace, kept, strict=True)}
    places |= {each.name: each.room for each in (*joined, *split)}
    types = _types(spec, variant)
    kernel_test, host_test = _tests(spec, types, tuple(given.values()))
    writer = _KernelWriter(spec, variant, chip, stems, places, takes_empty, is_tuned)
    return VariantParts(
        steps=tuple(
            StepPart(
                index,
                tuple(writer.part(key, kernel) for key, kernel in enumerate(step.kernels)),
                step.waits,
            )
            for index, step in enumerate(variant.steps)
        ),
        struct=upper(camel(variant.stages.graph.name)) + "TilingData",
        workspace=(*kept, *lists),
        kernel_condition="" if is_one else kernel_test,
        host_condition="" if is_one and len(types) > 1 else host_test,
        mode=variant.mode,
        uses_object=variant.uses_object,
        type_sizes={
            name: _element_bytes(given[variant.tensors[tensor]])
            for step in variant.steps
            for kernel in step.kernels
            for tensor, name in _type_sizes(kernel).items()
        },
        joined=joined,
        split=split,
    )


@dataclass(frozen=True)
class _KernelWriter:
    """What the kernels of a variant have in common."""

    spec: OpSpec
    variant: Variant
    chip: Chip
    stems: Mapping[str, str]
    places: Mapping[str, str]
    """Where what is in the workspace begins, by tensor."""
    takes_empty: bool
    is_tuned: bool

    def part(self, key: int, kernel: compiler.OperatorKernel) -> KernelPart:
        """Return one kernel as the templates see it."""
        text = kernel.text
        launch_name = f"Launch{text.struct.removesuffix('Tiling')}"
        launch = compiler.launch_function(
            kernel,
            self.variant.stages.fused,
            self.chip,
            launch_name,
            {a.name: self.stems[a.name] for a in self.spec.attrs if a.type in NUMBERS},
            takes_empty=self.takes_empty,
            is_tuned=self.is_tuned,
            takes_parts=self.is_tuned and _schedule(kernel) == "lines",
        )
        shares = compiler.shares_of_kernel(kernel)
        return KernelPart(
            key=key,
            struct=text.struct,
            member=text.struct[0].lower() + text.struct[1:],
            declaration=text.declaration.render().rstrip(),
            definition=text.definition.render().rstrip(),
            shares=tuple(self.share(each, _type_tensors(kernel)) for each in shares),
            is_product=any(each.kind == "cube" for each in shares),
            takes_all=isinstance(kernel, compiler.HostedKernel) and bool(kernel.header),
            schedule=_schedule(kernel),
            launch_name=launch_name,
            launch=launch.rstrip(),
            type_arguments="".join(f"{each}, " for each in _type_sizes(kernel).values()),
        )

    def share(self, share: compiler.Share, type_tensors: tuple[str, ...]) -> SharePart:
        """Return what one kind of core runs of a kernel."""
        arguments = [self.variant.tensors[name] for name in share.arguments]
        types = ", ".join(f"DTYPE_{self.variant.tensors[n].upper()}" for n in type_tensors)
        return SharePart(
            {"cube": "AIC", "vector": "AIV"}[share.kind],
            f"{share.class_name}<{types}>" if types else share.class_name,
            ", ".join(self.places.get(name) or self.stems[name] for name in arguments),
        )


def _types(spec: OpSpec, variant: Variant) -> list[tuple[DType, ...]]:
    """Return the data types of a variant's combinations: of inputs, then of outputs."""
    rows = {
        tuple(dtype.name for dtype in row): row
        for row in map(spec.variant_dtypes, range(spec.variant_count))
    }
    return [rows[names] for names in variant.combinations]


def _tests(
    spec: OpSpec, types: Sequence[Sequence[DType]], descriptions: Sequence[str]
) -> tuple[str, str]:
    """Return how the preprocessor and TilingFunc know a variant's data types."""
    tensors = (*spec.inputs, *spec.outputs)
    macros = [f"ORIG_DTYPE_{tensor.name.upper()}" for tensor in tensors]
    kernel = [[f"{m} == {d.ge}" for m, d in zip(macros, row, strict=True)] for row in types]
    host = [
        [
            f"{text}->GetDataType() == ge::{dtype.ge}"
            for text, dtype in zip(descriptions, row, strict=True)
        ]
        for row in types
    ]
    return _any_of(kernel), _any_of(host)


def _element_bytes(description: str) -> str:
    return f"ge::GetSizeByDataType({description}->GetDataType())"


def _schedule(kernel: compiler.OperatorKernel) -> str:
    return kernel.plan.program.schedule if isinstance(kernel, compiler.VectorKernel) else ""


def _type_sizes(kernel: compiler.OperatorKernel) -> Mapping[str, str]:
    return compiler.type_sizes(kernel) if isinstance(kernel, compiler.VectorKernel) else {}


def _type_tensors(kernel: compiler.OperatorKernel) -> tuple[str, ...]:
    return kernel.text.type_tensors if isinstance(kernel, compiler.VectorKernel) else ()


def _descriptions(spec: OpSpec) -> list[str]:
    """Return the C++ of each tensor's description in a tiling context, of the first of a list."""
    found = [f"context->GetInputDesc({place})" for place in input_places(spec)]
    return found + [f"context->GetOutputDesc({place})" for place in output_places(spec)]


def _any_of(rows: list[list[str]]) -> str:
    """Return the C++ of whether all conditions of a row hold, of any row."""
    parts = [" && ".join(row) for row in rows]
    return parts[0] if len(parts) == 1 else " || ".join(f"({each})" for each in parts)
