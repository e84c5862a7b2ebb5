"""A built project with the combinations of data types that its artifact folder has kernels for."""

from __future__ import annotations

import json
from dataclasses import replace

from opkit.toolchain.building.binary_list import only_listed
from opkit.toolchain.building.project_build import Artifact
from opkit.toolchain.projects import Project

__all__ = ["project_as_built"]


def project_as_built(artifact: Artifact) -> Project:
    """Return an artifact's project without the combinations that the chip lacks."""
    document = json.loads(artifact.manifest.read_bytes())
    built = {
        operator["op"]: [tuple(variant["dtypes"]) for variant in operator["variants"]]
        for operator in document["operators"]
    }
    operators = tuple(
        only_listed(spec, built.get(spec.op, ())) for spec in artifact.project.operators
    )
    return replace(artifact.project, operators=operators)
