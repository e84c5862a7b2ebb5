"""Lightning on the device, where it is installed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = "lightning.pytorch"


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("accelerator", ["npu", "auto"])
def test_a_model_is_fitted_on_the_device(accelerator: str, precision: str, tmp_path: Any) -> None:
    # A registered accelerator alone got a model on the CPU and autocast of cuda.
    lightning = pytest.importorskip(NAME)
    import opkit.torch_npu.lightning as plug_in

    plug_in.register()
    seen: list[tuple[str, Any]] = []

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch: Any, index: int) -> Any:
            found = self.layer(batch[0])
            seen.append((found.device.type, found.dtype))
            return functional.cross_entropy(found.float(), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    functional = torch.nn.functional
    rows = torch.utils.data.TensorDataset(torch.randn(4, 4), torch.tensor([0, 1, 0, 1]))
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator=accelerator,
        devices=1,
        precision=precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(tmp_path),
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(rows, batch_size=2))
    dtype = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(precision, torch.float32)
    assert seen == [("npu", dtype)] * 2


_SCRIPT = """
import sys
from opkit.torch_npu import offer
offer()
from torch_npu.contrib import transfer_to_npu
import torch
import lightning.pytorch as pl
import opkit.torch_npu.lightning

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, index):
        y = self.layer(batch[0])
        print(y.device.type, y.dtype)
        return y.float().square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(2, 4)), batch_size=2)
trainer = pl.Trainer(max_epochs=1, accelerator=sys.argv[1], devices=1, precision="bf16-mixed",
                     logger=False, enable_checkpointing=False, enable_progress_bar=False,
                     enable_model_summary=False)
trainer.fit(Model(), rows)
"""


@pytest.mark.parametrize("accelerator", ["auto", "gpu", "cuda"])
def test_what_is_led_from_cuda_is_fitted_on_the_device(accelerator: str, tmp_path: Any) -> None:
    # Lightning took its own accelerator for cuda, which refused the device that it was given.
    pytest.importorskip(NAME)
    script = [sys.executable, "-c", _SCRIPT, accelerator]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "npu torch.bfloat16"


def test_devices_that_are_not_there_are_named() -> None:
    pytest.importorskip(NAME)
    import opkit.torch_npu.lightning as plug_in

    assert NAME in sys.modules
    with pytest.raises(ValueError, match="OPKIT_NPU_COUNT"):
        plug_in._numbers([0, 7])
    assert plug_in._numbers("1") == plug_in._numbers(1) == plug_in._numbers("0,") == [0]
