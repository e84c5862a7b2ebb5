from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import TypeVar as _TypeVar

import numpy.typing as _npt
import torch as _torch

_Array = _TypeVar("_Array", _npt.NDArray[_Any], _torch.Tensor)

def rmsnorm(x: _Array, gamma: _Array, *, epsilon: float = ...) -> _Array: ...
def rmsnorm_grad(grad_y: _Array, x: _Array, gamma: _Array, *, epsilon: float = ...) -> tuple[_Array, _Array]: ...

class Rmsnorm(_torch.nn.Module):
    def __init__(self, *, epsilon: float = ...) -> None: ...
    def forward(self, x: _torch.Tensor, gamma: _torch.Tensor) -> _torch.Tensor: ...
