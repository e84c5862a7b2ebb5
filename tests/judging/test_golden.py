"""Goldens in processes of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.judging import Limits, sandbox_fault
from opkit.judging.golden import golden_apart

_GOLDEN = """
import os
import numpy as np

def twice(x, *, scale=1.0):
    return 2 * x * scale, x > 0

def twice_input_shapes(shape):
    return {"gamma": shape[-1:]}

def forks(x):
    return np.asarray(os.fork())

def leaves(x):
    os._exit(0)
"""


def test_a_golden_apart_gives_what_it_gives_and_what_it_tries_is_named(tmp_path: Path) -> None:
    file = tmp_path / "golden.py"
    file.write_text(_GOLDEN)
    x = np.array([[-1.5, 2.0]])
    sandboxed = not sandbox_fault()
    with golden_apart(file, uses_torch=False, limits=Limits(), sandboxed=sandboxed) as golden:
        assert golden.has("twice")
        assert not golden.has("thrice")
        first, second = golden.reference("twice", [x], attrs={"scale": 3.0})
        np.testing.assert_array_equal(first, 6 * x)
        np.testing.assert_array_equal(second, x > 0)
        with pytest.raises(OperatorError, match="not permitted"):
            golden.reference("forks", [x], attrs={})
        with pytest.raises(OperatorError, match="ended"):
            golden.reference("leaves", [x], attrs={})
        # Another process has taken its place.
        assert golden.reference("twice", [x], attrs={})[0].shape == (1, 2)


def test_a_golden_that_does_not_load_is_named(tmp_path: Path) -> None:
    file = tmp_path / "golden.py"
    file.write_text("import nothing_of_that_name")
    with (
        pytest.raises(OperatorError, match=r"golden\.py.*nothing_of_that_name"),
        golden_apart(file, uses_torch=False, limits=Limits(), sandboxed=False),
    ):
        pass


@pytest.mark.torch
def test_a_program_of_torch_is_its_own_second_reference(tmp_path: Path) -> None:
    # Every float task of the public benchmark ended by an error that there was none.
    pytest.importorskip("torch", reason="the golden is a program of torch")
    file = tmp_path / "golden.py"
    file.write_text("def third(x):\n    return x / 3\n")
    with golden_apart(file, uses_torch=True, limits=Limits(), sandboxed=False) as golden:
        assert golden.has_second("third")
        (found,) = golden.second("third", [np.ones(1, np.float32)], attrs={})
        assert found.dtype == np.float32
