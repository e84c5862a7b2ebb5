"""rmsnorm in PyTorch: registers the operators, their shapes for the compiler, and their gradients.

Importing this loads torch; `import rmsnorm` does it by itself where torch is loaded already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rmsnorm import _ARTIFACT

__all__ = ["Rmsnorm", "operators"]

_path = _ARTIFACT / "_torch.so"
if not _path.is_file():
    raise ImportError(f'{_path} does not exist: install torch, then run "opkit build" in the project')
torch.ops.load_library(str(_path))

operators = torch.ops.rmsnorm
"""The registered operators, such as `operators.rmsnorm`."""

# Input dtypes to output dtypes, for every supported combination.
outputs_of: dict[str, dict[tuple[torch.dtype, ...], tuple[torch.dtype, ...]]] = {
    "rmsnorm": {
        (torch.float16, torch.float16): (torch.float16,),
        (torch.bfloat16, torch.bfloat16): (torch.bfloat16,),
        (torch.float32, torch.float32): (torch.float32,),
    },
    "rmsnorm_grad": {
        (torch.float16, torch.float16, torch.float16): (torch.float16, torch.float16),
        (torch.bfloat16, torch.bfloat16, torch.bfloat16): (torch.bfloat16, torch.bfloat16),
        (torch.float32, torch.float32, torch.float32): (torch.float32, torch.float32),
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


# The shapes here have to agree with InferShape in op_host/rmsnorm.cpp.
@torch.library.register_fake("rmsnorm::rmsnorm")
def _fake_rmsnorm(x, gamma, epsilon=1e-06) -> Any:
    results_ = _result_dtypes("rmsnorm", x, gamma)
    return torch.empty(_broadcast_shape(x, gamma), dtype=results_[0], device="cpu")


# The shapes here have to agree with InferShape in op_host/rmsnorm_grad.cpp.
@torch.library.register_fake("rmsnorm::rmsnorm_grad")
def _fake_rmsnorm_grad(grad_y, x, gamma, epsilon=1e-06) -> Any:
    results_ = _result_dtypes("rmsnorm_grad", grad_y, x, gamma)
    return (
        torch.empty(_broadcast_shape(grad_y, x, gamma), dtype=results_[0], device="cpu"),
        torch.empty(_broadcast_shape(grad_y, x, gamma), dtype=results_[1], device="cpu"),
    )


def _save_rmsnorm(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    (x, gamma, epsilon,) = inputs
    ctx.save_for_backward(x, gamma)
    ctx.epsilon = epsilon


def _backward_rmsnorm(ctx: Any, grad_y: Any) -> Any:
    (x, gamma,) = ctx.saved_tensors
    grad_x, grad_gamma = operators.rmsnorm_grad(grad_y, x, gamma, ctx.epsilon)
    return _sum_to(grad_x, x), _sum_to(grad_gamma, gamma), None


torch.library.register_autograd(
    "rmsnorm::rmsnorm", _backward_rmsnorm, setup_context=_save_rmsnorm
)


class Rmsnorm(torch.nn.Module):
    """Rmsnorm as a module; its attributes are given once."""

    def __init__(self, *, epsilon: float = 1e-06) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor, gamma: torch.Tensor) -> Any:
        return operators.rmsnorm(x, gamma, self.epsilon)
