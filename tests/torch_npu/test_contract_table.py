"""Each name that libraries take from a device's module: there, or refused with a reason.

`contract.tsv` is what `benchmarks/device_contract.py` collects from their sources: torch 2.13,
transformers 5.24, accelerate 1.15, diffusers 0.42, peft 0.21, lightning 2.6, timm 1.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

TABLE = Path(__file__).with_name("contract.tsv")
ROWS = dict(line.split("\t") for line in TABLE.read_text().splitlines())
REFUSED = {
    "MemPool": "memory pools are for graphs of launches, which the device has not",
    "graph": "the device has no graphs of launches",
    "use_mem_pool": "memory pools are for graphs of launches, which the device has not",
    "sparse": "the device has no sparse tensors",
    "set_rng_ctx": "asked of hpu only",
    "unset_rng_ctx": "asked of hpu only",
    "_utils": "asked whether it is there; the number in a device's name serves as well",
    "_utils._get_device_index": "of _utils",
}
WITHOUT_ARGUMENTS: dict[str, type] = {
    "accelerator.current_accelerator": torch.device,
    "accelerator.current_device_index": int,
    "accelerator.current_stream": torch.Stream,
    "accelerator.device_count": int,
    "accelerator.get_memory_info": tuple,
    "accelerator.is_available": bool,
    "accelerator.max_memory_allocated": int,
    "accelerator.memory_allocated": int,
    "current_device": int,
    "current_stream": torch.Stream,
    "default_generators": tuple,
    "device_count": int,
    "get_device_name": str,
    "get_rng_state": torch.Tensor,
    "is_available": bool,
    "is_bf16_supported": bool,
    "is_initialized": bool,
    "mem_get_info": tuple,
    "memory_allocated": int,
    "memory_reserved": int,
    "memory_stats": dict,
    "random.get_rng_state_all": list,
    "Event": torch.Event,
    "Stream": torch.Stream,
}
NOTHING = ("accelerator.empty_cache", "accelerator.synchronize", "empty_cache", "synchronize")


def found(name: str) -> Any:
    owner: Any = torch if name.startswith("accelerator.") else torch.npu
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


@pytest.mark.parametrize("name", ROWS)
def test_a_name_that_libraries_take_is_there(name: str) -> None:
    # default_generators and _get_generator were not: torch.compile's checkpoints need them.
    if name in REFUSED:
        with pytest.raises(AttributeError):
            found(name)
    else:
        if name.startswith("accelerator.") and not hasattr(torch.accelerator, name.split(".")[1]):
            pytest.skip("this torch has no such function")
        assert found(name) is not None


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_what_takes_nothing_gives_what_is_expected(name: str) -> None:
    assert name in ROWS
    if name.startswith("accelerator.") and not hasattr(torch.accelerator, name.split(".")[1]):
        pytest.skip("this torch has no such function")
    value = found(name)
    assert isinstance(value() if callable(value) else value, WITHOUT_ARGUMENTS[name])


@pytest.mark.parametrize("name", NOTHING)
def test_what_only_waits_or_frees_gives_nothing(name: str) -> None:
    if name.startswith("accelerator.") and not hasattr(torch.accelerator, name.split(".")[1]):
        pytest.skip("this torch has no such function")
    assert found(name)() is None


def test_the_state_of_random_numbers_is_a_seed_and_an_offset() -> None:
    # It was an engine's of the CPU, 5064 bytes: random tensors of torch.distributed.tensor ended
    # in an AssertionError, since they take the state apart.
    generator = torch.Generator("npu").manual_seed(5)
    assert generator.get_state().view(torch.int64).tolist() == [5, 0]
    first = torch.rand(3, device="npu", generator=generator)
    drawn = torch.randperm(9, device="npu", generator=generator)  # of the CPU
    assert generator.get_state().view(torch.int64).tolist() == [5, 2]
    generator.set_offset(0)
    assert torch.equal(torch.rand(3, device="npu", generator=generator).cpu(), first.cpu())
    again = generator.clone_state()
    assert torch.equal(torch.randperm(9, device="npu", generator=again).cpu(), drawn.cpu())
    with pytest.raises(RuntimeError, match="16 bytes"):
        generator.set_state(torch.zeros(5064, dtype=torch.uint8))
