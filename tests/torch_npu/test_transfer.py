"""Scripts that say "cuda", led to the device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

_LEAD = """
from opkit.torch_npu import offer
offer()
from torch_npu.contrib import transfer_to_npu
import torch
"""
_ASKED = """
x = torch.ones(2, device="cuda")
with torch.device("cuda"):
    y = torch.zeros(2)
begin, end = (torch.Event("cuda", enable_timing=True) for _ in range(2))
begin.record(); z = x.cuda() + y; end.record()
assert isinstance(begin, torch.Event) and begin.elapsed_time(end) > 0
stream = torch.Stream("cuda")
with torch.cuda.stream(stream):
    z = z + 1
torch.cuda.synchronize()
assert z.device.type == x.device.type == y.device.type == "npu"
assert torch.cuda.get_device_capability() < (8, 0)
assert torch.cuda.get_device_properties(0).major < 8
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert (torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()).dtype == torch.bfloat16

class Later(torch.Event):
    pass

assert issubclass(Later, torch.Event) and torch.Generator("cuda").device.type == "npu"
from torch.utils._triton import has_triton
assert not has_triton()
from torch.distributed.checkpoint.filesystem import _get_available_device_type
assert _get_available_device_type() == "npu"
print(z.tolist())
"""


def _run(script: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_asked_of_cuda_is_the_device_s(tmp_path: Path) -> None:
    # torch.Event("cuda") was "not linked with support"; a capability of None could not be compared.
    assert _run(_LEAD + _ASKED, tmp_path) == "[2.0, 2.0]"
