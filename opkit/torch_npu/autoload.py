"""What `import torch` calls: names the device, and loads nothing that it can leave for later."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings

__all__ = ["autoload"]

OFF = "OPKIT_NPU"


def autoload() -> None:
    """Make `npu` a device of PyTorch; never raises, because that would end `import torch`.

    Does nothing with `OPKIT_NPU=0`. Where the vendor's torch_npu is installed, says so once and
    leaves the name to it.
    """
    if os.environ.get(OFF, "1") == "0":
        return
    try:
        if _is_real_one_installed():
            print_once = f"opkit: torch_npu is installed, so npu is its device; {OFF}=0 hides this"
            sys.stderr.write(f"{print_once}\n")
            return
        _drop_half_imported()
        from opkit.torch_npu.register import register

        register()
    except Exception as error:
        warnings.warn(
            f"opkit's npu device is not available: {error} ({OFF}=0 leaves it off)", stacklevel=2
        )


def _drop_half_imported() -> None:
    """Forget modules of this package whose import has led here by way of torch's: they are imported
    whole now, and Python gives their importers what is there in the end, which is that."""
    for name, module in list(sys.modules.items()):
        is_begun = getattr(getattr(module, "__spec__", None), "_initializing", False)
        if name.startswith(f"{__package__}.") and is_begun:
            del sys.modules[name]


def _is_real_one_installed() -> bool:
    """Whether there is a torch_npu that is not opkit's own stand-in."""
    if "torch_npu" in sys.modules:
        found = sys.modules["torch_npu"].__spec__
    else:
        found = importlib.util.find_spec("torch_npu")
    if found is None or found.origin is None:
        return False
    folder = os.path.dirname(found.origin)  # noqa: PTH120 - pathlib is not loaded yet
    return not os.path.exists(os.path.join(folder, "opkit_stand_in"))  # noqa: PTH110, PTH118
