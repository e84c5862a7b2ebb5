from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import TypeVar as _TypeVar

import numpy.typing as _npt
import torch as _torch

_Array = _TypeVar("_Array", _npt.NDArray[_Any], _torch.Tensor)

def gelu_custom(x: _Array) -> _Array: ...
def gelu_custom_grad(grad_y: _Array, x: _Array) -> _Array: ...

class GELUCustom(_torch.nn.Module):
    def forward(self, x: _torch.Tensor) -> _torch.Tensor: ...
