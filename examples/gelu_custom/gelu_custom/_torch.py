"""gelu_custom in PyTorch: what its operators are, for the compiler, autograd, vmap and autocast.

Importing this loads torch; `import gelu_custom` does it by itself where torch is loaded already.
"""

import torch
from opkit import torch_bridge as _bridge
from opkit.torch_bridge import broadcast_shape as _broadcast_shape

from gelu_custom import _opkit

__all__ = ["GELUCustom", "operators"]


# What second and higher derivatives are taken of: the formulas of the backward operator, by torch.
def _formula_gelu_custom_grad(grad_y, x):
    shape_ = _broadcast_shape(grad_y, x)
    return (
        (
            grad_y
            * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x**3))
            * (
                x
                * torch.sigmoid(-1.5957691216057308 * (x + 0.044715 * x**3))
                * (0.21406444881780076 * x**2 + 1.5957691216057308)
                + 1
            )
        ).expand(shape_),
    )


# The shapes here have to agree with InferShape in op_host/: `t` are the inputs, `a` the attributes.
operators = _bridge.register_operators(
    "gelu_custom",
    _opkit.artifact,
    [
        _bridge.Operator(
            "gelu_custom",
            inputs=("x",),
            outputs=("y",),
            attributes=(),
            dtypes=(
                (
                    "float16",
                    "float16",
                ),
            ),
            shapes=lambda t, a: (t[0].shape,),
            works_by_row=False,
            maps=True,
            gradient=_bridge.Gradient(
                "gelu_custom_grad",
                inputs=(
                    "grad_y",
                    "x",
                ),
                attributes=(),
                outputs=("grad_x",),
                formula=_formula_gelu_custom_grad,
            ),
        ),
        _bridge.Operator(
            "gelu_custom_grad",
            inputs=(
                "grad_y",
                "x",
            ),
            outputs=("grad_x",),
            attributes=(),
            dtypes=(
                (
                    "float16",
                    "float16",
                    "float16",
                ),
            ),
            shapes=lambda t, a: (_bridge.elementwise_shape(t[0], t[1]),),
            works_by_row=False,
            maps=True,
        ),
    ],
)
"""The registered operators, such as `operators.gelu_custom`."""


class GELUCustom(_bridge.OperatorModule):
    """GELUCustom as a module."""

    operator = operators.gelu_custom

    def forward(self, x):
        return self._run(x)
