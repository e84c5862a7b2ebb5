"""The kernel, tiling and host files of an operator whose kernel the compiler makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from opkit import compiler, kernels
from opkit.chips import Chip, find_chip
from opkit.scaffold import formula
from opkit.scaffold.identifiers import camel, choose_stems, upper
from opkit.schema import OpSpec
from opkit.templating import render_template

from .lists import ListCopy, has_lists, input_places, list_copies, output_places
from .rows import OverRows, over_rows
from .sizes import limit_statements, size_statements
from .variants import NUMBERS, Variant, reduces, variants_of

__all__ = ["program_files"]


@dataclass(frozen=True)
class _Share:
    """What one kind of core runs, as the templates see it."""

    kind: str
    """`AIV` or `AIC`."""
    class_name: str
    arguments: str


@dataclass(frozen=True)
class _Kernel:
    """One kernel as the templates see it."""

    key: int
    """The number under which it is chosen: of its step's kernels the first that fits."""
    struct: str
    member: str
    """The tiling data's member that holds its own, where there are several steps."""
    declaration: str
    definition: str
    shares: tuple[_Share, ...]
    """What each kind of core runs."""
    is_product: bool
    """Whether it runs on cube cores, which its launch counts."""
    takes_all: bool
    """Whether all vector cores that are launched share what it does."""
    schedule: str
    """Of a vector kernel."""
    launch_name: str
    """The host's function that fills its tiling data."""
    launch: str
    type_arguments: str
    """Of that function: the bytes of elements whose type it does not know."""


@dataclass(frozen=True)
class _Step:
    """One step as the templates see it."""

    index: int
    kernels: tuple[_Kernel, ...]
    waits: bool


@dataclass(frozen=True)
class _Room:
    """A tensor in the workspace."""

    stem: str
    bytes: str
    """C++ of how many it takes."""


@dataclass(frozen=True)
class _Variant:
    """The combinations of data types that share a kernel as the templates see them."""

    steps: tuple[_Step, ...]
    struct: str
    """Of the tiling data of all steps, where there are several."""
    workspace: tuple[_Room, ...]
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
    def kernels(self) -> tuple[_Kernel, ...]:
        """Of all steps."""
        return tuple(kernel for step in self.steps for kernel in step.kernels)


@dataclass(frozen=True)
class _Program:
    """What the templates need beside the operator's view."""

    variants: tuple[_Variant, ...]
    sizes: tuple[str, ...]
    """Statements that read the named sizes off the inputs' shapes, and check them."""
    launch_arguments: str
    """But for the number of cores."""
    row_sizes: tuple[str, str]
    """The C++ names of how many rows and columns there are, where inputs' shapes are told apart at
    run time; the first is empty where all elements are one row."""
    steps: Mapping[str, str]
    """The C++ name of how far an input's rows are apart, of which there may be one for all."""
    output_places: tuple[str, ...]
    """The C++ of which of a launch's tensors each output is."""
    is_empty: str
    """Whether an axis has no elements; empty where each step sees to that itself."""
    has_leading: bool
    has_joined_lists: bool
    """Whether a list's tensors may have any number of axes."""
    cut: str
    """C++ that cuts products into blocks; empty where there are none."""
    library: str
    """Functions that kernels call."""

    @property
    def has_products(self) -> bool:
        """Whether cube cores take part."""
        return any(each.mode != "vector" for each in self.variants)

    @property
    def has_vectors(self) -> bool:
        """Whether vector cores have steps of their own."""
        return any(not k.is_product for each in self.variants for k in each.kernels)

    @property
    def uses_object(self) -> bool:
        """Whether a step needs the header of the Matmul object."""
        return any(each.uses_object for each in self.variants)

    @property
    def uses_types(self) -> bool:
        """Whether a kernel compares types."""
        return any("std::" in k.definition for each in self.variants for k in each.kernels)


def program_files(spec: OpSpec, *, compute_units: tuple[str, ...]) -> dict[PurePosixPath, str]:
    """Return the text of op_kernel/<name>.cpp, op_kernel/<name>_tiling.h and op_host/<name>.cpp.

    Args:
        spec: as `with_shapes` returns it.
        compute_units: chips, such as `ai_core-Ascend910B2`.
    Raises:
        SpecError: a formula is wrong, or takes kernels that a generated operator does not have.
        UsageError: an unknown compute unit, or one that the kernel cannot run on.
    """
    chips = [find_chip(unit) for unit in compute_units]
    formula.check_chips(chips)
    # Tiles are for the chip with the least memory: one host file serves all.
    chip = min(chips, key=lambda each: each.count("memory.ub_bytes"))
    views = formula.kernel_views(spec, compute_units=compute_units)
    rows = over_rows(spec) if spec.has_formula else None
    if rows is None:
        variants = variants_of(spec, chip)
    else:
        spec = rows.spec
        choices = compiler.Choices(schedule="lines")
        variants = variants_of(
            spec, chip, choices=choices, one_row=rows.one_row, written=rows.written
        )

    def render(stems: Mapping[str, str], *, is_bare: bool = False) -> dict[PurePosixPath, str]:
        context = {
            "operator": replace(
                views(stems), kind="program", is_blank=False, walks=rows.walks if rows else ""
            ),
            "program": _program(spec, variants, chip, stems, rows),
            # A class's words mean nothing outside of it.
            "is_bare": is_bare,
        }
        parts = {
            f"op_kernel/{spec.name}.cpp": "op_kernel/program.cpp.jinja",
            f"op_kernel/{spec.name}_tiling.h": "op_kernel/program_tiling.h.jinja",
            f"op_host/{spec.name}.cpp": "op_host/operator.cpp.jinja",
        }
        if rows is not None:
            parts[f"op_host/{spec.name}_tuning.inc"] = "op_host/tuning.inc.jinja"
        return {
            PurePosixPath(path): render_template(template, context)
            for path, template in parts.items()
        }

    names = [tensor.name for tensor in (*spec.inputs, *spec.outputs)]
    names += [attr.name for attr in spec.attrs]
    return render(choose_stems(names, lambda stems: render(stems, is_bare=True).values()))


def _program(
    spec: OpSpec,
    variants: tuple[Variant, ...],
    chip: Chip,
    stems: Mapping[str, str],
    over: OverRows | None,
) -> _Program:
    sizes = compiler.sizes_of(variants[0].stages.fused)
    parameters = [compiler.size_parameter(name) for name in sizes]
    attributes = [attr.name for attr in spec.attrs if attr.type in NUMBERS]
    given = [f"static_cast<double>({stems[name]})" for name in attributes]
    is_reduced = reduces(spec)
    one_row = over.one_row if over else frozenset()
    steps = {name: compiler.size_parameter(str(compiler.step_size(name))) for name in one_row}
    extents = [name for name in parameters if name not in steps.values()]
    empty = " || ".join(f"{name} == 0" for name in extents) or "false"
    rows = tuple(
        _variant(
            spec,
            variant,
            chip,
            stems,
            is_one=len(variants) == 1,
            takes_empty=not is_reduced,
            is_tuned=over is not None,
        )
        for variant in variants
    )
    is_cut = any("CubeCut" in kernel.launch for row in rows for kernel in row.kernels)
    return _Program(
        variants=rows,
        cut=compiler.CUT_CPP if is_cut else "",
        library=_library(variants, *(["list_tensors.h"] if has_lists(spec) else [])),
        sizes=() if over else (*size_statements(spec, stems), *limit_statements(variants[0])),
        row_sizes=(
            compiler.size_parameter(over.rows) if over and over.rows else "",
            compiler.size_parameter(over.columns) if over else "",
        ),
        steps=steps,
        launch_arguments="".join(f"{each}, " for each in (*parameters, *given)),
        output_places=output_places(spec),
        is_empty=empty if is_reduced else "",
        has_leading=any("..." in (tensor.axes or ()) for tensor in spec.inputs),
        has_joined_lists=any(t.is_list and "..." in (t.axes or ()) for t in spec.inputs),
    )


def _library(variants: tuple[Variant, ...], *headers: str) -> str:
    """Return the text of the library's headers that kernels need, and of others."""
    found = dict.fromkeys(
        kernel.header
        for variant in variants
        for step in variant.steps
        for kernel in step.kernels
        if isinstance(kernel, compiler.HostedKernel) and kernel.header
    )
    found |= dict.fromkeys(headers)
    text = kernels.header_text(*found) if found else ""
    return text.replace('#include "kernel_operator.h"\n', "")


def _variant(
    spec: OpSpec,
    variant: Variant,
    chip: Chip,
    stems: Mapping[str, str],
    *,
    is_one: bool,
    takes_empty: bool,
    is_tuned: bool,
) -> _Variant:
    attributes = {a.name: stems[a.name] for a in spec.attrs if a.type in NUMBERS}
    sizes = {n: compiler.size_parameter(n) for n in compiler.sizes_of(variant.stages.fused)}
    tensors = (*spec.inputs, *spec.outputs)
    given = {t.name: text for t, text in zip(tensors, _descriptions(spec), strict=True)}
    joined, split = list_copies(spec, stems)
    lists = [*joined, *split]
    rooms = (
        *(
            _Room(f"room{index}", compiler.bytes_text(tensor, sizes))
            for index, tensor in enumerate(variant.workspace)
        ),
        *(
            _list_room(each, variant.tensor_of(each.name), sizes, given[each.name])
            for each in lists
        ),
    )
    places = {
        tensor.name: room.stem for tensor, room in zip(variant.workspace, rooms, strict=False)
    }
    places |= {each.name: each.room for each in lists}
    steps = []
    for index, step in enumerate(variant.steps):
        rows = []
        for key, kernel in enumerate(step.kernels):
            text = kernel.text
            launch_name = f"Launch{text.struct.removesuffix('Tiling')}"
            launch = compiler.launch_function(
                kernel,
                variant.stages.fused,
                chip,
                launch_name,
                attributes,
                takes_empty=takes_empty,
                is_tuned=is_tuned,
                takes_parts=is_tuned and _schedule(kernel) == "lines",
            )
            shares = compiler.shares_of_kernel(kernel)
            rows.append(
                _Kernel(
                    key=key,
                    struct=text.struct,
                    member=text.struct[0].lower() + text.struct[1:],
                    declaration=text.declaration.render().rstrip(),
                    definition=text.definition.render().rstrip(),
                    shares=tuple(
                        _share(each, variant, places, stems, _type_tensors(kernel))
                        for each in shares
                    ),
                    is_product=any(each.kind == "cube" for each in shares),
                    takes_all=isinstance(kernel, compiler.HostedKernel) and bool(kernel.header),
                    schedule=_schedule(kernel),
                    launch_name=launch_name,
                    launch=launch.rstrip(),
                    type_arguments="".join(f"{each}, " for each in _type_sizes(kernel).values()),
                )
            )
        steps.append(_Step(index, tuple(rows), step.waits))
    rows_of_types = {
        tuple(dtype.name for dtype in row): row
        for row in map(spec.variant_dtypes, range(spec.variant_count))
    }
    types = [rows_of_types[names] for names in variant.combinations]
    macros = [f"ORIG_DTYPE_{tensor.name.upper()}" for tensor in tensors]
    kernel_test = _any_of(
        [[f"{m} == {d.ge}" for m, d in zip(macros, row, strict=True)] for row in types]
    )
    host_test = _any_of(
        [
            [
                f"{d}->GetDataType() == ge::{each.ge}"
                for d, each in zip(given.values(), row, strict=True)
            ]
            for row in types
        ]
    )
    name = variant.stages.graph.name
    return _Variant(
        tuple(steps),
        upper(camel(name)) + "TilingData",
        rooms,
        "" if is_one else kernel_test,
        "" if is_one and len(types) > 1 else host_test,
        variant.mode,
        variant.uses_object,
        {
            name: _element_bytes(given[variant.tensors[tensor]])
            for step in variant.steps
            for kernel in step.kernels
            for tensor, name in _type_sizes(kernel).items()
        },
        joined,
        split,
    )


def _list_room(
    each: ListCopy, tensor: compiler.Tensor, sizes: Mapping[str, str], description: str
) -> _Room:
    """Return where a list's tensors lie together; kernels of several data types may share it."""
    elements = " * ".join(f"({compiler.extent_cpp(extent, sizes)})" for extent in tensor.shape)
    return _Room(each.room, f"DivideUp({elements} * {_element_bytes(description)}, 512) * 512")


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


def _share(
    share: compiler.Share,
    variant: Variant,
    places: Mapping[str, str],
    stems: Mapping[str, str],
    type_tensors: tuple[str, ...],
) -> _Share:
    arguments = [variant.tensors[name] for name in share.arguments]
    types = ", ".join(f"DTYPE_{variant.tensors[name].upper()}" for name in type_tensors)
    return _Share(
        {"cube": "AIC", "vector": "AIV"}[share.kind],
        f"{share.class_name}<{types}>" if types else share.class_name,
        ", ".join(places.get(name) or stems[name] for name in arguments),
    )
