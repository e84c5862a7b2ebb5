"""`torch.device("npu")`: the emulated chip as a device of PyTorch.

`autoload` is what `import torch` calls; `npu` is the module that becomes `torch.npu`; `offer` lets
scripts that opkit runs import `torch_npu`.
"""

from __future__ import annotations

from opkit.torch_npu.autoload import autoload
from opkit.torch_npu.stand_in import offer

__all__ = ["autoload", "offer"]
