"""An operator with a Matmul object: host tiling, a mixed kernel that does not say so, workspace."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from opkit import runtime
from opkit.toolchain import build, load_project

MULTIPLIED = Path(__file__).parent / "data" / "multiplied"


def test_an_operator_multiplies_on_cube_cores(tmp_path: Path) -> None:
    root = tmp_path / "multiplied"
    shutil.copytree(MULTIPLIED, root)
    artifact = build(load_project(root))
    generator = np.random.default_rng(1)
    a = generator.integers(-4, 5, (128, 48)).astype(np.float16)
    b = generator.integers(-4, 5, (48, 64)).astype(np.float16)
    (c,) = runtime.open(artifact.folder).run("Multiplied", [a, b], {})
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, np.where(product > 0, product, product * 0.5))
