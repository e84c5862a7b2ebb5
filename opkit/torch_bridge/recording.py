"""What every layer of a torch module gave, forward and backward, in the order in which it came.

A recording holds, by name: each layer's outputs (`forward`), the gradients of the inputs of each
layer without layers inside (`backward`), and the gradients of the parameters (`parameter`). A layer
that runs twice has `#2` behind its name the second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from opkit.dtypes import DTYPES
from opkit.errors import UsageError
from opkit.files import written_aside

__all__ = ["Entry", "Recording", "load_recording", "record"]

_DTYPE_NAMES = {row.torch: row.name for row in DTYPES if row.torch is not None}
_SEED = 20


@dataclass(frozen=True)
class Entry:
    """One tensor that a layer gave."""

    stage: str
    """`forward`, `backward` or `parameter`."""
    layer: str
    """The module's name in the network, such as `blocks.3.norm`; `` is the network itself."""
    tensor: int
    """Which of the layer's tensors."""
    kind: str
    """The layer's class."""
    dtype: str
    values: NDArray[Any]
    """As they are stored; bfloat16 as uint16."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What the same entry of another recording has too."""
        return self.stage, self.layer, self.tensor


@dataclass(frozen=True)
class Recording:
    """One run of a network."""

    entries: tuple[Entry, ...]

    def save(self, path: Path) -> None:
        """Write the recording as an .npz file, to be compared with another run's later.

        Raises:
            UsageError: the file cannot be written.
        """
        arrays: dict[str, NDArray[Any]] = {
            f"tensor{number}": entry.values for number, entry in enumerate(self.entries)
        }
        index = [
            {key: value for key, value in vars(entry).items() if key != "values"}
            for entry in self.entries
        ]
        try:
            with written_aside(path) as aside, aside.open("wb") as file:
                arrays["index"] = np.array(json.dumps(index))
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def load_recording(path: Path) -> Recording:
    """Return a recording that `Recording.save` wrote.

    Raises:
        UsageError: the file is missing or is none.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            index = json.loads(str(archive["index"]))
            entries = tuple(
                Entry(**fields, values=archive[f"tensor{number}"])
                for number, fields in enumerate(index)
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: is no recording: {error}") from error
    return Recording(entries)


def record(
    model: torch.nn.Module,
    inputs: tuple[Any, ...],
    named: Mapping[str, Any] | None = None,
    *,
    loss: Callable[[Any], torch.Tensor] | None = None,
    backward: bool = True,
) -> Recording:
    """Run a network once and return what its layers gave. Gradients of the parameters are reset.

    Args:
        inputs: positional arguments; tensors that require a gradient keep requiring it.
        named: keyword arguments.
        loss: from the network's result to one number; the default weighs every element of every
            floating output by a fixed random number, so that no error can cancel.
        backward: whether to run backward too.
    """
    recorder = _Recorder()
    model.zero_grad(set_to_none=True)
    with recorder.attached(model):
        result = model(*inputs, **(named or {}))
        if backward:
            total = loss(result) if loss is not None else _weighed(result)
            if total.requires_grad:
                total.backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            recorder.add("parameter", name, 0, "Parameter", parameter.grad)
    return Recording(tuple(recorder.entries))


class _Recorder:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._runs: dict[str, int] = {}

    def add(self, stage: str, layer: str, number: int, kind: str, tensor: torch.Tensor) -> None:
        name = _DTYPE_NAMES.get(str(tensor.dtype).removeprefix("torch."))
        if name is None:
            return
        plain = tensor.detach().cpu().contiguous()
        if name == "bfloat16":
            values = plain.view(torch.int16).numpy().view(np.uint16).copy()
        else:
            values = plain.numpy().copy()
        self.entries.append(Entry(stage, layer, number, kind, name, values))

    @contextmanager
    def attached(self, model: torch.nn.Module) -> Iterator[None]:
        handles = []
        for name, module in model.named_modules():
            is_leaf = next(module.children(), None) is None
            handles.append(module.register_forward_pre_hook(self._before(name, is_leaf)))
            handles.append(module.register_forward_hook(self._after(name)))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before(self, name: str, is_leaf: bool) -> Callable[..., None]:
        def before(module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
            run = self._runs[name] = self._runs.get(name, 0) + 1
            layer = name if run == 1 else f"{name}#{run}"
            if not is_leaf:
                return
            for number, tensor in enumerate(_tensors(inputs)):
                if tensor.requires_grad:
                    hook = self._gradient(layer, number, type(module).__name__)
                    tensor.register_hook(hook)  # type: ignore[no-untyped-call]

        return before

    def _gradient(self, layer: str, number: int, kind: str) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            self.add("backward", layer, number, kind, gradient)

        return hook

    def _after(self, name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: tuple[Any, ...], result: Any) -> None:
            run = self._runs[name]
            layer = name if run == 1 else f"{name}#{run}"
            for number, tensor in enumerate(_tensors(result)):
                self.add("forward", layer, number, type(module).__name__, tensor)

        return hook


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _weighed(result: Any) -> torch.Tensor:
    generator = torch.Generator().manual_seed(_SEED)
    total = torch.zeros((), dtype=torch.float64)
    for tensor in _tensors(result):
        if tensor.is_floating_point():
            weights = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + 0.5
            # The weights in the result's own type: both networks must get the same gradient.
            total = total + (tensor * weights.to(torch.float16).to(tensor.dtype)).sum().double()
    return total
