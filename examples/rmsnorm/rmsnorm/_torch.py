"""rmsnorm in PyTorch: registers the operators, their shapes for the compiler, and their gradients.

Importing this loads torch; `import rmsnorm` does it by itself where torch is loaded already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    known = "; ".join(", ".join(map(str, wanted)) for wanted in outputs_of[name])
    raise TypeError(f"{name} has no kernel for {', '.join(map(str, given))}; it takes {known}")


def _broadcast_shape(*tensors: torch.Tensor | None) -> Sequence[int]:
    return torch.broadcast_shapes(*(tensor.shape for tensor in tensors if tensor is not None))


def _row_shape(shape: Sequence[int], *, keepdims: bool) -> Sequence[int]:
    return (*shape[:-1], 1) if keepdims else tuple(shape[:-1])


def _sum_to(gradient: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return the gradient of an input that was broadcast: summed over the axes it was repeated along."""
    if gradient.shape == tensor.shape:
        return gradient
    # A value per row may have kept its last axis.
    if tensor.dim() == gradient.dim() + 1 and tensor.shape[-1] == 1:
        return gradient.unsqueeze(-1)
    return gradient.sum_to_size(tensor.shape)


def _register_derivative(name: str, formula: Callable[..., Any], input_count: int) -> None:
    """Let torch differentiate a backward operator: in float32, by its formulas."""

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[:input_count])
        ctx.attributes = inputs[input_count:]

    def backward(ctx: Any, *gradients: Any) -> Any:
        creates_graph = torch.is_grad_enabled()
        wanted = [i for i in range(input_count) if ctx.needs_input_grad[i]]
        inputs = ctx.saved_tensors
        with torch.enable_grad():
            results = formula(*(tensor.float() for tensor in inputs), *ctx.attributes)
            chosen = [(r, g.float()) for r, g in zip(results, gradients, strict=True) if r.requires_grad]
            found = torch.autograd.grad(
                [result for result, _ in chosen],
                [inputs[i] for i in wanted],
                [gradient for _, gradient in chosen],
                create_graph=creates_graph,
                allow_unused=True,
            )
        by_index = dict(zip(wanted, found, strict=True))
        return (*(by_index.get(i) for i in range(input_count)), *(None for _ in ctx.attributes))

    torch.library.register_autograd(f"rmsnorm::{name}", backward, setup_context=save)


def _maximum(a: Any, b: Any) -> Any:
    return torch.maximum(torch.as_tensor(a), torch.as_tensor(b))


def _minimum(a: Any, b: Any) -> Any:
    return torch.minimum(torch.as_tensor(a), torch.as_tensor(b))


def _register_vmap(name: str, input_count: int, row_inputs: frozenset[int], works_by_row: bool) -> None:
    """Let torch.vmap run an operator once for all: its batch axis becomes the first."""
    tiles = [i for i in range(input_count) if i not in row_inputs]

    def run(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        tensors = [
            tensor if axis is None else tensor.movedim(axis, 0)
            for tensor, axis in zip(args[:input_count], in_dims, strict=False)
        ]
        own = [
            tensor.shape if axis is None else tensor.shape[1:]
            for tensor, axis in zip(tensors, in_dims, strict=False)
        ]
        whole = torch.broadcast_shapes(*(own[i] for i in tiles))
        if works_by_row and not whole:
            raise NotImplementedError(f"{name} needs an axis of its own besides the one of vmap")
        is_first_batched = in_dims[tiles[0]] is not None
        for i, axis in enumerate(in_dims[:input_count]):
            shape = whole[:-1] if i in row_inputs else whole
            if axis is None and is_first_batched and i not in row_inputs and own[i] == whole[-1:]:
                continue  # the last axis alone is broadcast by the kernel
            ones = (1,) * (len(shape) - len(own[i]))
            batch = 1 if axis is None else info.batch_size
            tensors[i] = tensors[i].reshape(batch, *ones, *own[i]).expand(info.batch_size, *shape)
        result = getattr(operators, name)(*tensors, *args[input_count:])
        return result, (0,) * len(result) if isinstance(result, tuple) else 0

    torch.library.register_vmap(f"rmsnorm::{name}", run)


_library = torch.library.Library("rmsnorm", "FRAGMENT")  # noqa: TOR901


def _register_autocast(name: str, input_count: int) -> None:
    """Under torch.autocast, give an operator's floating inputs the widest of their types."""

    def run(*args: Any) -> Any:
        floating = [t.dtype for t in args[:input_count] if t.is_floating_point()]
        widest = floating[0] if floating else None
        for dtype in floating[1:]:
            widest = torch.promote_types(widest, dtype)
        given = [t.to(widest) if t.is_floating_point() else t for t in args[:input_count]]
        with torch.autocast("cpu", enabled=False):
            return getattr(operators, name)(*given, *args[input_count:])

    _library.impl(name, run, "AutocastCPU")


_register_vmap("rmsnorm", 2, frozenset(), True)
_register_autocast("rmsnorm", 2)
_register_vmap("rmsnorm_grad", 3, frozenset(), True)
_register_autocast("rmsnorm_grad", 3)


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


# What second and higher derivatives are taken of: the formulas of the backward operator, by torch.
def _formula_rmsnorm_grad(grad_y: Any, x: Any, gamma: Any, epsilon: Any) -> Any:
    epsilon = torch.as_tensor(epsilon)
    shape_ = _broadcast_shape(grad_y, x, gamma)
    return (((gamma*grad_y - x*torch.mean(gamma*grad_y*x, dim=-1, keepdim=True)/(epsilon + torch.mean(x**2, dim=-1, keepdim=True)))/torch.sqrt(epsilon + torch.mean(x**2, dim=-1, keepdim=True))).expand(shape_), (grad_y*x/torch.sqrt(epsilon + torch.mean(x**2, dim=-1, keepdim=True))).expand(shape_),)


_register_derivative("rmsnorm_grad", _formula_rmsnorm_grad, 3)


class Rmsnorm(torch.nn.Module):
    """Rmsnorm as a module; its attributes are given once."""

    def __init__(self, *, epsilon: float = 1e-06) -> None:
        super().__init__()
        self.epsilon = epsilon

    def extra_repr(self) -> str:
        return f"epsilon={self.epsilon!r}"

    def forward(self, x: torch.Tensor, gamma: torch.Tensor) -> Any:
        return operators.rmsnorm(x, gamma, self.epsilon)
