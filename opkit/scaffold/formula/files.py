"""The kernel, tiling and host files of one operator."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import jinja2

from opkit.schema import OpSpec

from .view import view_kernel

__all__ = ["kernel_files"]

_TEMPLATES = Path(__file__).parents[2] / "templates"
_KERNELS = {
    "elementwise": "op_kernel/elementwise.cpp.jinja",
    "rowwise": "op_kernel/rowwise.cpp.jinja",
    "blank": "op_kernel/blank.cpp.jinja",
}


def kernel_files(
    spec: OpSpec, *, compute_units: tuple[str, ...] = ("ai_core-Ascend910B2",)
) -> dict[PurePosixPath, str]:
    """Return the text of op_kernel/<name>.cpp, op_kernel/<name>_tiling.h and op_host/<name>.cpp.

    Without a formula the kernel launches and its Compute is a marked gap.

    Args:
        spec: the operator.
        compute_units: chips, such as `ai_core-Ascend910B2`.
    Raises:
        SpecError: a formula is wrong, or does not fit the operator's data types.
        UsageError: an unknown compute unit, or one that the generated kernel cannot run on.
    """
    view = view_kernel(spec, compute_units=compute_units)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    parts = {
        f"op_kernel/{spec.name}.cpp": _KERNELS[view.kind],
        f"op_kernel/{spec.name}_tiling.h": "op_kernel/tiling.h.jinja",
        f"op_host/{spec.name}.cpp": "op_host/operator.cpp.jinja",
    }
    return {
        PurePosixPath(path): environment.get_template(template).render(operator=view)
        for path, template in parts.items()
    }
