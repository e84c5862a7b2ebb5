"""Naming the device, and its module `torch.npu`."""

from __future__ import annotations

import sys
from types import ModuleType

import torch
from torch.utils import backend_registration

from opkit.torch_npu import amp, native, npu
from opkit.torch_npu.compiling import compile_by_default
from opkit.torch_npu.data_parallel import offer_copies_between_devices
from opkit.torch_npu.dynamo import register_interface
from opkit.torch_npu.first_use import load_before_first_use
from opkit.torch_npu.hccl import register_hccl
from opkit.torch_npu.modules import keep_parameters
from opkit.torch_npu.processes import refuse_other_processes
from opkit.torch_npu.stand_in import offer

__all__ = ["register"]


_RANDOM: tuple[str, ...] = (
    "get_rng_state",
    "get_rng_state_all",
    "set_rng_state",
    "set_rng_state_all",
)
_RANDOM += ("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed")


def _random_module() -> ModuleType:
    """Return `torch.npu.random`, where libraries look for what keeps random numbers."""
    made = ModuleType("torch.npu.random", "Random numbers of the device; `torch.npu` has them too.")
    for name in _RANDOM:
        setattr(made, name, getattr(npu, name))
    npu.random = made
    return made


def register() -> None:
    """Name PyTorch's private device `npu`.

    The native library is loaded at once where it has been built; else at the device's first use.
    """
    backend_registration.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)  # type: ignore[no-untyped-call]
    sys.modules["torch.npu.amp"] = amp
    sys.modules["torch.npu.random"] = _random_module()
    backend_registration.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    keep_parameters()
    compile_by_default()
    register_interface()
    register_hccl()
    offer_copies_between_devices()
    refuse_other_processes()
    offer()  # accelerate, transformers and others take the device where they find torch_npu
    if native.is_built():
        native.load()
    else:
        load_before_first_use(native.load)
