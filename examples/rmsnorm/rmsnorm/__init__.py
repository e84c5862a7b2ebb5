"""Rmsnorm: operators for AI cores, called on NumPy arrays or torch tensors.

    import numpy as np
    import rmsnorm
    rmsnorm.rmsnorm(x, gamma)

bfloat16 arrays are uint16 arrays of its bits, or arrays of ml_dtypes.bfloat16.
"""

from opkit.runtime import OperatorPackage

__all__ = ["rmsnorm", "rmsnorm_grad"]

_opkit = OperatorPackage(
    __name__, __path__, modules=("Rmsnorm",)
)


def rmsnorm(x, gamma, *, epsilon=1e-06):
    """Return y.

        y = x * rsqrt(mean(x**2, axis=-1) + epsilon) * gamma

    Inputs are arrays or CPU tensors, all of one kind; the result is of that kind too.
    """
    return _opkit.call("rmsnorm", (x, gamma,), (epsilon,))


def rmsnorm_grad(grad_y, x, gamma, *, epsilon=1e-06):
    """Return grad_x, grad_gamma, the gradients of the outputs of rmsnorm.

    Inputs are arrays or CPU tensors, all of one kind; the result is of that kind too.
    """
    return _opkit.call("rmsnorm_grad", (grad_y, x, gamma,), (epsilon,))


# The torch modules load torch, so they are made when first asked for.
__getattr__ = _opkit.find_module

_opkit.register_torch()
