"""Operators of complex numbers, which no instruction of these chips computes with."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import OpkitError
from opkit.toolchain import build, load_project

DOUBLED = Path(__file__).parent / "data" / "doubled"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> runtime.Library:
    root = tmp_path_factory.mktemp("complex") / "doubled"
    shutil.copytree(DOUBLED, root)
    notes: list[str] = []
    # It had no combination of data types that opkit has, and did not build.
    artifact = build(load_project(root), warn=notes.append)
    assert any("Doubled" in note and "17" in note for note in notes)  # ge::DT_COMPLEX128
    return runtime.open(artifact.folder)


def test_complex_numbers_reach_a_kernel_and_come_back(library: runtime.Library) -> None:
    x = (np.arange(5) - 2j * np.arange(5)).astype(np.complex64)
    assert library.infer("Doubled", [x]) == [runtime.OutputSpec((10,), "complex64")]
    (y,) = library.run("Doubled", [x])
    assert y.dtype == np.complex64
    np.testing.assert_array_equal(y, np.concatenate([x, x]))


def test_complex_numbers_of_halves_are_carried_as_words(library: runtime.Library) -> None:
    x = np.arange(6, dtype=np.float16).view(np.uint32)
    (y,) = library.run("Doubled", [x], dtypes=["complex32"])
    np.testing.assert_array_equal(y.view(np.float16), np.tile(np.arange(6), 2))
    with pytest.raises(OpkitError, match="uint32"):
        library.run("Doubled", [x])
    with pytest.raises(OpkitError, match="complex128"):
        library.run("Doubled", [np.zeros(3, np.complex128)])
