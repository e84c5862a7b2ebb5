"""gelu_custom in PyTorch: registers the operators, their shapes for the compiler, and their gradients.

Importing this loads torch; `import gelu_custom` does it by itself where torch is loaded already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gelu_custom import _ARTIFACT

__all__ = ["GELUCustom", "operators"]

_path = _ARTIFACT / "_torch.so"
if not _path.is_file():
    raise ImportError(f'{_path} does not exist: install torch, then run "opkit build" in the project')
torch.ops.load_library(str(_path))

operators = torch.ops.gelu_custom
"""The registered operators, such as `operators.gelu_custom`."""

# Input dtypes to output dtypes, for every supported combination.
outputs_of: dict[str, dict[tuple[torch.dtype, ...], tuple[torch.dtype, ...]]] = {
    "gelu_custom": {
        (torch.float16,): (torch.float16,),
    },
    "gelu_custom_grad": {
        (torch.float16, torch.float16): (torch.float16,),
    },
}


def _result_dtypes(name: str, *tensors: torch.Tensor | None) -> tuple[torch.dtype, ...]:
    """Return the dtypes of the outputs; an optional input left out takes what the others allow."""
    given = tuple(None if tensor is None else tensor.dtype for tensor in tensors)
    for wanted, results in outputs_of[name].items():
        if all(dtype in (None, want) for dtype, want in zip(given, wanted, strict=True)):
            return results
    raise TypeError(f"{name} has no kernel for {', '.join(map(str, given))}")


def _broadcast_shape(*tensors: torch.Tensor | None) -> Sequence[int]:
    return torch.broadcast_shapes(*(tensor.shape for tensor in tensors if tensor is not None))


def _row_shape(shape: Sequence[int], *, keepdims: bool) -> Sequence[int]:
    return (*shape[:-1], 1) if keepdims else tuple(shape[:-1])


def _sum_to(gradient: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return the gradient of an input that was broadcast: summed over the axes it was repeated along."""
    return gradient if gradient.shape == tensor.shape else gradient.sum_to_size(tensor.shape)


# The shapes here have to agree with InferShape in op_host/gelu_custom.cpp.
@torch.library.register_fake("gelu_custom::gelu_custom")
def _fake_gelu_custom(x) -> Any:
    results_ = _result_dtypes("gelu_custom", x)
    return torch.empty(x.shape, dtype=results_[0], device="cpu")


# The shapes here have to agree with InferShape in op_host/gelu_custom_grad.cpp.
@torch.library.register_fake("gelu_custom::gelu_custom_grad")
def _fake_gelu_custom_grad(grad_y, x) -> Any:
    results_ = _result_dtypes("gelu_custom_grad", grad_y, x)
    return torch.empty(_broadcast_shape(grad_y, x), dtype=results_[0], device="cpu")


def _save_gelu_custom(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    (x,) = inputs
    ctx.save_for_backward(x)


def _backward_gelu_custom(ctx: Any, grad_y: Any) -> Any:
    (x,) = ctx.saved_tensors
    grad_x = operators.gelu_custom_grad(grad_y, x)
    return _sum_to(grad_x, x)


torch.library.register_autograd(
    "gelu_custom::gelu_custom", _backward_gelu_custom, setup_context=_save_gelu_custom
)


class GELUCustom(torch.nn.Module):
    """GELUCustom as a module."""

    def forward(self, x: torch.Tensor) -> Any:
        return operators.gelu_custom(x)
