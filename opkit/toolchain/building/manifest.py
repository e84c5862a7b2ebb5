"""`manifest.json`: what an artifact folder holds, for whoever opens it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import opkit
from opkit.chips import Chip
from opkit.schema import OpSpec, TensorSpec
from opkit.toolchain.building.command import HOST_LIBRARY, kernel_variants
from opkit.toolchain.building.unit import Variant
from opkit.toolchain.projects import Project

__all__ = ["KERNEL_NAMES", "MANIFEST_NAME", "kernel_names_text", "listed_files", "manifest_text"]

MANIFEST_NAME = "manifest.json"
KERNEL_NAMES = "kernels.txt"


def manifest_text(
    project: Project,
    *,
    chip: Chip,
    abi_version: int,
    digests: Mapping[str, str],
    sources: Mapping[str, str],
) -> str:
    """Return the manifest of one build.

    Args:
        digests: hash by name of every file in the folder.
        sources: hash of every file of the project that was read, by its path below the root.
    """
    variants = {
        spec.op: [v for v in kernel_variants(spec, chip.npu_arch) if v.file in digests]
        for spec in project.operators
    }
    document = {
        "opkit": opkit.__version__,
        "abi_version": abi_version,
        "project": project.name,
        "package": project.package,
        "chip": chip.name,
        "npu_arch": chip.npu_arch,
        "host": HOST_LIBRARY,
        "numpy": _first(name for name in digests if name.startswith("_numpy")),
        "torch": _first(name for name in digests if name.startswith("_torch")),
        "operators": [
            {
                "op": spec.op,
                "kernel": spec.name,
                "inputs": [_tensor(tensor) for tensor in spec.inputs],
                "outputs": [_tensor(tensor) for tensor in spec.outputs],
                "variants": [_variant(variant, chip) for variant in variants[spec.op]],
            }
            for spec in project.operators
        ],
        "files": dict(sorted(digests.items())),
        "sources": dict(sorted(sources.items())),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def kernel_names_text(project: Project) -> str:
    """Return kernels.txt, for the operator call: `<op_type> <kernel>` a line."""
    return "".join(f"{spec.op} {spec.name}\n" for spec in project.operators)


def listed_files(folder: Path) -> tuple[str, ...]:
    """Return the files that a folder's manifest lists; none where it has no readable one."""
    try:
        files = json.loads((folder / MANIFEST_NAME).read_bytes())["files"]
        return tuple(name for name in files if Path(name).name == name)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def _tensor(tensor: TensorSpec) -> dict[str, str]:
    return {"name": tensor.name, "param_type": tensor.param_type}


def _variant(variant: Variant, chip: Chip) -> dict[str, object]:
    spec: OpSpec = variant.spec
    dtypes = spec.variant_dtypes(variant.index)
    return {
        "file": variant.file,
        "npu_arch": chip.npu_arch,
        "dtypes": [dtype.name for dtype in dtypes],
        "ge_dtypes": [dtype.ge_value for dtype in dtypes],
        "callable": variant.callable,
        "formats": [tensor.formats[variant.index] for tensor in (*spec.inputs, *spec.outputs)],
    }


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)
