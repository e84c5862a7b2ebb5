from collections.abc import Sequence as Sequence
from typing import Any, TypeVar

import numpy.typing as npt
import torch

_Array = TypeVar("_Array", npt.NDArray[Any], torch.Tensor)

def rmsnorm(x: _Array, gamma: _Array, *, epsilon: float = ...) -> _Array: ...
def rmsnorm_grad(grad_y: _Array, x: _Array, gamma: _Array, *, epsilon: float = ...) -> tuple[_Array, _Array]: ...

class Rmsnorm(torch.nn.Module):
    def __init__(self, *, epsilon: float = ...) -> None: ...
    def forward(self, x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor: ...
