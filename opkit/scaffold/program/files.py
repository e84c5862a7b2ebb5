"""The kernel, tiling and host files of an operator whose kernel the compiler makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from opkit import compiler, kernels
from opkit.chips import Chip, find_chip
from opkit.scaffold.formula import NUMBERS, OverRows, over_rows
from opkit.scaffold.identifiers import choose_stems
from opkit.scaffold.kernel_view import check_chips, kernel_views
from opkit.schema import OpSpec
from opkit.templating import render_template

from .lists import has_lists, output_places
from .parts import VariantParts, variant_parts
from .sizes import limit_statements, size_statements
from .variants import Variant, reduces, variants_of

__all__ = ["program_files"]


@dataclass(frozen=True)
class _Program:
    """What the templates need beside the operator's view."""

    variants: tuple[VariantParts, ...]
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
    check_chips(chips)
    # Tiles are for the chip with the least memory: one host file serves all.
    chip = min(chips, key=lambda each: each.count("memory.ub_bytes"))
    views = kernel_views(spec, compute_units=compute_units)
    rows = over_rows(spec) if spec.has_formula else None
    if rows is None:
        variants = variants_of(spec, chip)
    else:
        spec = rows.spec
        choices = compiler.Choices(schedule="lines")
        variants = variants_of(
            spec, chip, choices=choices, one_row=rows.one_row, written=rows.written
        )

    # What sizes follow from: other values than the ones that the kernel is made for are refused.
    fixed = {
        attribute.name: attribute.default
        for variant in variants
        for attribute in variant.stages.traced.attributes
        if attribute.is_fixed
    }

    def render(stems: Mapping[str, str], *, is_bare: bool = False) -> dict[PurePosixPath, str]:
        context = {
            "operator": replace(views(stems), kind="program", walks=rows.walks if rows else ""),
            "program": _program(spec, variants, chip, stems, rows),
            "fixed": fixed,
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
        variant_parts(
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
