"""rmsnorm in PyTorch: what its operators are, for the compiler, autograd, vmap and autocast.

Importing this loads torch; `import rmsnorm` does it by itself where torch is loaded already.
"""

import torch
from opkit import torch_bridge as _bridge
from opkit.torch_bridge import broadcast_shape as _broadcast_shape

from rmsnorm import _opkit

__all__ = ["Rmsnorm", "operators"]


# What second and higher derivatives are taken of: the formulas of the backward operator, by torch.
def _formula_rmsnorm_grad(grad_y, x, gamma, epsilon):
    epsilon = torch.as_tensor(epsilon)
    shape_ = _broadcast_shape(grad_y, x, gamma)
    return (((grad_y*gamma - torch.mean(grad_y*x*gamma, dim=-1, keepdim=True)*x/torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + epsilon)**2)/torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + epsilon)).expand(shape_), (grad_y*x/torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + epsilon)).expand(shape_),)


# The shapes here have to agree with InferShape in op_host/: `t` are the inputs, `a` the attributes.
operators = _bridge.register_operators(
    "rmsnorm",
    _opkit.artifact,
    [
        _bridge.Operator(
            "rmsnorm",
            inputs=("x", "gamma",),
            outputs=("y",),
            attributes=("epsilon",),
            dtypes=(
                ("float16", "float16", "float16",),
                ("bfloat16", "bfloat16", "bfloat16",),
                ("float32", "float32", "float32",),
            ),
            shapes=lambda t, a: (_bridge.rowwise_shape([t[0], t[1]], reduces=False),),
            works_by_row=True,
            maps=True,
            gradient=_bridge.Gradient(
                "rmsnorm_grad",
                inputs=("grad_y", "x", "gamma",),
                attributes=("epsilon",),
                outputs=("grad_x", "grad_gamma",),
                formula=_formula_rmsnorm_grad,
            ),
        ),
        _bridge.Operator(
            "rmsnorm_grad",
            inputs=("grad_y", "x", "gamma",),
            outputs=("grad_x", "grad_gamma",),
            attributes=("epsilon",),
            dtypes=(
                ("float16", "float16", "float16", "float16", "float16",),
                ("bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16",),
                ("float32", "float32", "float32", "float32", "float32",),
            ),
            shapes=lambda t, a: (_bridge.rowwise_shape([t[0], t[1], t[2]], reduces=False), _bridge.rowwise_shape([t[0], t[1], t[2]], reduces=False),),
            works_by_row=True,
            maps=True,
        ),
    ],
)
"""The registered operators, such as `operators.rmsnorm`."""


class Rmsnorm(_bridge.OperatorModule):
    """Rmsnorm as a module; its attributes are given once."""

    operator = operators.rmsnorm

    def __init__(self, *, epsilon=1e-06):
        _bridge.OperatorModule.__init__(self, {"epsilon": epsilon})

    def forward(self, x, gamma):
        return self._run(x, gamma)
