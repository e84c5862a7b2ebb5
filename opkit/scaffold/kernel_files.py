"""The kernel, tiling and host files of one operator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from opkit.scaffold.identifiers import choose_stems
from opkit.scaffold.kernel_view import kernel_views
from opkit.scaffold.program import program_files
from opkit.schema import OpSpec
from opkit.templating import render_template

__all__ = ["kernel_files"]

_KERNELS = {
    "elementwise": "op_kernel/elementwise.cpp.jinja",
    "rowwise": "op_kernel/rowwise.cpp.jinja",
    "blank": "op_kernel/blank.cpp.jinja",
}


def kernel_files(
    spec: OpSpec, *, compute_units: tuple[str, ...] = ("ai_core-Ascend910B2",)
) -> dict[PurePosixPath, str]:
    """Return the text of op_kernel/<name>.cpp, op_kernel/<name>_tiling.h and op_host/<name>.cpp.

    And of op_host/<name>_tuning.inc, where `opkit tune` writes, for kernels that walk in tiles.

    Without a formula the kernel launches and its Compute is a marked gap.

    Args:
        spec: the operator.
        compute_units: chips, such as `ai_core-Ascend910B2`.
    Raises:
        SpecError: a formula is wrong, or does not fit the operator's data types.
        UsageError: an unknown compute unit, or one that the generated kernel cannot run on.
    """
    if spec.has_formula:
        return program_files(spec, compute_units=compute_units)
    views = kernel_views(spec, compute_units=compute_units)

    def render(stems: Mapping[str, str]) -> dict[PurePosixPath, str]:
        view = views(stems)
        parts = {
            f"op_kernel/{spec.name}.cpp": _KERNELS[view.kind],
            f"op_kernel/{spec.name}_tiling.h": "op_kernel/tiling.h.jinja",
            f"op_host/{spec.name}.cpp": "op_host/operator.cpp.jinja",
        }
        if view.is_tuned:
            parts[f"op_host/{spec.name}_tuning.inc"] = "op_host/tuning.inc.jinja"
        return {
            PurePosixPath(path): render_template(template, {"operator": view})
            for path, template in parts.items()
        }

    names = [tensor.name for tensor in (*spec.inputs, *spec.outputs)]
    names += [attr.name for attr in spec.attrs]
    return render(choose_stems(names, lambda stems: render(stems).values()))
