"""The module `torch_npu` that scripts under `opkit run` find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SCRIPT = """
import numpy as np
import torch
import torch_npu
from torch_npu.testing.common_utils import (
    SupportedDevices, create_common_tensor, create_dtype_tensor, test_2args_broadcast
)
from torch_npu.testing.decorator import Dtypes, Formats, instantiate_tests
from torch_npu.testing.testcase import TestCase, run_tests

torch.npu.config.allow_internal_format = False
torch_npu.npu.set_compile_mode(jit_compile=False)


@instantiate_tests
class TestAdd(TestCase):
    def test_right(self):
        x, y = create_common_tensor([np.float16, 2, (3, 40)], -5, 5)
        self.assertRtolEqual((x + x).numpy(), (y + y).cpu().numpy())
        self.assertEqual(x, y)
        self.assertEqual(x.numpy() > 0, (y > 0).cpu().numpy())
        for cpu, npu in test_2args_broadcast(torch.sub):
            self.assertRtolEqual(cpu, npu)

    def test_wrong(self):
        x, y = create_common_tensor([np.float32, 2, (3, 40)], 1, 5)
        self.assertRtolEqual(x.numpy(), (y * 1.01).cpu().numpy())

    def test_of_other_types(self):
        x, y = create_common_tensor([np.float32, 2, (4,)], 1, 5)
        self.assertRtolEqual(x.numpy(), y.half().cpu().numpy())

    @Dtypes(torch.float32, torch.int32)
    @Formats(0, 2)
    def test_each(self, dtype, npu_format):
        x, y = create_dtype_tensor((2, 3), dtype, npu_format, no_zero=True)
        self.assertRtolEqual(x, y)
        self.assertTrue((x != 0).all())

    @SupportedDevices(["Ascend310P"])
    def test_of_another_chip(self):
        raise AssertionError


if __name__ == "__main__":
    run_tests()
"""


def test_tests_written_for_torch_npu_run(tmp_path: Path) -> None:
    script = tmp_path / "test_add.py"
    script.write_text(SCRIPT)
    argv = [sys.executable, "-m", "opkit", "run", str(script), "-v"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    ended = {
        line.split()[0]: line.rpartition("... ")[2].split()[0].strip("'\"")
        for line in done.stderr.splitlines()
        if line.startswith("test_") and "... " in line
    }
    assert ended == {
        "test_right": "ok",
        "test_wrong": "FAIL",
        "test_of_other_types": "FAIL",
        "test_of_another_chip": "skipped",
        **{f"test_each_{form}_{dtype}": "ok" for dtype in ("float32", "int32") for form in (0, 2)},
    }, done.stderr
    assert "for Ascend310P, and this is Ascend910B" in done.stderr
    assert "120 of 120 elements differ by more than 0.0001: at [0, 0]" in done.stderr
    assert "the types differ: float32 and float16" in done.stderr
    assert done.returncode == 1


DOCUMENTED = """
import torch
import torch_npu

x = torch.rand(2, 3, 4, 6).npu()
assert torch_npu.npu_confusion_transpose(x, (0, 2, 1, 3), (2, 4, 18), True).shape == (2, 4, 18)
assert torch_npu.npu_confusion_transpose(x, (0, 2, 1), (2, 12, 6), False).shape == (2, 6, 12)
assert torch_npu.npu_transpose(x, (3, 0, 2, 1)).is_contiguous()
classes = torch_npu.npu_one_hot(torch.tensor([5, 3, 2], dtype=torch.int32).npu(), depth=5)
assert classes.tolist() == [[0.0] * 5, [0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
around = torch_npu.npu_pad(torch.tensor([[20.0, 10.0]]).npu(), [1, 0, 0, 2])
assert around.tolist() == [[0, 0, 0, 0], [20, 10, 0, 0]]
rows = torch.arange(10.0).reshape(2, 5).npu()
assert torch_npu.npu_slice(rows, [0, 1], [2, 2]).tolist() == [[1, 2], [6, 7]]
torch.testing.assert_close(
    torch_npu.npu_fast_gelu(torch.tensor([1.0, 2.0]).npu()).cpu(),
    torch.tensor([0.8458, 1.9357]), rtol=0, atol=1e-4,
)
scores, mask = torch.randn(2, 2, 3, 3), torch.rand(2, 2, 3, 3) > 0.5
for is_fixed, hidden in ((False, mask), (True, torch.ones(3, 3).triu(1).bool())):
    torch.testing.assert_close(
        torch_npu.npu_scaled_masked_softmax(scores.npu(), mask.npu(), 0.5, is_fixed).cpu(),
        (scores * 0.5).masked_fill(hidden, -10000.0).softmax(-1),
    )
for wrong in (
    lambda: torch_npu.npu_slice(rows, [0, 4], [2, 2]),
    lambda: torch_npu.npu_pad(rows, [1, 1]),
):
    try:
        wrong()
    except ValueError as error:
        print(error)
print(torch_npu.get_npu_format(rows) == torch_npu.Format.ND)
"""


def test_operators_give_what_their_documents_say(tmp_path: Path) -> None:
    script = tmp_path / "documented.py"
    script.write_text(DOCUMENTED)
    argv = [sys.executable, "-m", "opkit", "run", str(script)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2 elements from 4 on do not lie in dim 1 of 5",
        "2 paddings for 2 dims, expected two for each",
        "True",
    ]


def test_libraries_find_the_module_where_the_device_is_named() -> None:
    # accelerate and Trainer took the CPU, without a word, unless "opkit run" started them.
    code = """
import importlib.util, torch
print(importlib.util.find_spec("torch_npu") is not None)
"""
    for named, expected in (("1", "True"), ("0", "False")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OPKIT_NPU": named, "PYTHONPATH": ""},
        )
        assert done.stdout.strip() == expected
