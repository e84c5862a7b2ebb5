"""`torch.device("npu")`: the emulated chip as a device of PyTorch.

`autoload` is what `import torch` calls; `backend` is the module that becomes `torch.npu`.
"""

from __future__ import annotations

from opkit.torch_npu.autoload import autoload

__all__ = ["autoload"]
