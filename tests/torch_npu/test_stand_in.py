"""The module `torch_npu` that scripts under `opkit run` find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
