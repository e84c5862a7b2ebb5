"""`torch.device("npu")`: the emulated chip as a device of PyTorch.

`autoload` is what `import torch` calls; `npu` is the module that becomes `torch.npu`; `libraries`
builds the device ahead of its first use; `operator_counts` says what ran where, `Watch` which line
of a model it came from; `offer` lets scripts that opkit runs import `torch_npu`,
`offering_variables` programs that it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names
from opkit.torch_npu.autoload import autoload
from opkit.torch_npu.counts import operator_counts
from opkit.torch_npu.extension import extension_include_dirs, extension_link_flags
from opkit.torch_npu.stand_in import offer, offering_variables

if TYPE_CHECKING:
    from opkit.torch_npu.build import is_built, libraries
    from opkit.torch_npu.timing import StreamTime
    from opkit.torch_npu.watch import Watch

__all__ = [
    "StreamTime",
    "Watch",
    "autoload",
    "extension_include_dirs",
    "extension_link_flags",
    "is_built",
    "libraries",
    "offer",
    "offering_variables",
    "operator_counts",
]

# "import torch" imports this package.
__getattr__ = lazy_names(
    __name__,
    {"build": ("is_built", "libraries"), "timing": ("StreamTime",), "watch": ("Watch",)},
)
