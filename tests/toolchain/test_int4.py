"""Operators with tensors of int4, two elements a byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import OpkitError
from opkit.testing.cases.cases import case_variants
from opkit.toolchain import Artifact, build, load_project

NIBBLES = Path(__file__).parent / "data" / "nibbles"
VALUES = np.array([[-8, 7, 0, -1, 3, 2], [1, -2, 5, -6, 4, -3]])
BYTES = np.array([[0x78, 0xF0, 0x23], [0xE1, 0xA5, 0xD4]], np.uint8)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    # It had no combination of data types that opkit has, and did not build.
    root = tmp_path_factory.mktemp("int4") / "nibbles"
    shutil.copytree(NIBBLES, root)
    return build(load_project(root))


@pytest.fixture(scope="module")
def library(artifact: Artifact) -> runtime.Library:
    return runtime.open(artifact.folder)


def test_int4_comes_back_two_a_byte(library: runtime.Library) -> None:
    x = VALUES.astype(np.float16)
    assert library.infer("Nibbles", [x]) == [runtime.OutputSpec((2, 6), "int4")]
    (y,) = library.run("Nibbles", [x])
    np.testing.assert_array_equal(y, BYTES)
    out = np.zeros_like(BYTES)
    library.run("Nibbles", [x], out=out, out_dtype="int4")
    np.testing.assert_array_equal(out, BYTES)


def test_int4_goes_in_two_a_byte(library: runtime.Library) -> None:
    assert library.infer("Nibbles", [BYTES], dtypes=["int4"])[0].shape == (2, 6)
    (y,) = library.run("Nibbles", [BYTES], dtypes=["int4"])
    np.testing.assert_array_equal(y, VALUES)


def test_what_is_not_whole_bytes_is_refused(library: runtime.Library) -> None:
    with pytest.raises(OpkitError, match="two elements share a byte"):
        library.run("Nibbles", [np.zeros((2, 3), np.float16)])
    with pytest.raises(OpkitError, match="int4 is carried as uint8"):
        library.run("Nibbles", [BYTES.view(np.int8)], dtypes=["int4"])
    with pytest.raises(OpkitError, match="there is none"):
        library.run("Nibbles", [np.uint8(3)], dtypes=["int4"])


def test_no_cases_are_made_of_int4(artifact: Artifact) -> None:
    (spec,) = artifact.project.operators
    assert (spec.variant_count, case_variants(spec)) == (2, [])
