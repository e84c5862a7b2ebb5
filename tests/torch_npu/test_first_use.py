"""What a program may ask of the device before its library is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

X = torch.ones(2)
INDEX = torch.zeros(1, 1, dtype=torch.long)
ASKS: dict[str, Callable[[], Any]] = {
    "stream": lambda: torch.Stream("npu"),
    "event": lambda: torch.Event("npu"),
    "generator": lambda: torch.Generator("npu"),
    "nested": lambda: torch.nested.nested_tensor([X], device="npu"),
    "as nested": lambda: torch.nested.as_nested_tensor([X], device="npu"),
    "sparse": lambda: torch.sparse_coo_tensor(INDEX, [1.0], device=torch.device("npu")),
    "pinned": lambda: X.pin_memory(),
    "memory": lambda: torch.accelerator.get_memory_info(),
}


class LoadedError(Exception):
    """The library would be loaded here."""


@pytest.fixture
def unloaded() -> Iterator[None]:
    """Have torch as it is before the library is there."""
    from opkit.torch_npu import first_use

    def load() -> None:
        raise LoadedError

    before = torch.Stream, torch.nested.nested_tensor, torch.Tensor.pin_memory
    first_use.load_before_first_use(load)
    yield
    first_use.restore()
    assert before == (torch.Stream, torch.nested.nested_tensor, torch.Tensor.pin_memory)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("name", ASKS)
def test_the_first_that_asks_for_the_device_loads_it(name: str) -> None:
    # Those behind the generator ended in "PyTorch is not linked with support for npu devices",
    # or "Please register PrivateUse1HooksInterface".
    if name == "memory" and not hasattr(torch.accelerator, "get_memory_info"):
        pytest.skip("this torch has no such function")
    with pytest.raises(LoadedError):
        ASKS[name]()


@pytest.mark.usefixtures("unloaded")
def test_what_is_for_the_cpu_loads_nothing() -> None:
    assert torch.sparse_coo_tensor(INDEX, [1.0], (1,)).to_dense().tolist() == [1.0]
    assert torch.Generator().device.type == "cpu"
    if hasattr(torch.accelerator, "memory_allocated"):
        # It ended in an assertion.
        assert torch.accelerator.memory_allocated() == 0


@pytest.mark.slow
def test_pinned_memory_is_there_before_the_device_is() -> None:
    # PyTorch asks the accelerator that it has for pinned memory: here one without a library yet.
    calls = (
        "torch.empty(3, pin_memory=True)",
        "torch.tensor([1.0], pin_memory=True)",
        "torch.ones(2).new_zeros(3, pin_memory=True)",
        "torch.UntypedStorage(3).pin_memory()",
    )
    for call in calls:
        code = f"import torch; assert {call}.is_pinned(); assert torch.npu.is_initialized()"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_no_two_files_name_a_type_alike() -> None:
    # Files share translation units, and which ones do changes with their lengths.
    from opkit.torch_npu import build

    files: dict[str, list[str]] = {}
    for path in build._SOURCES.rglob("*.cpp"):
        for name in re.findall(
            r"^(?:struct|class|enum class) (\w+)[^;{]*\{", path.read_text(), re.M
        ):
            files.setdefault(name, []).append(path.name)
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
