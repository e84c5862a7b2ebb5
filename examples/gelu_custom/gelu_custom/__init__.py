"""GELUCustom: operators for AI cores, called on NumPy arrays or torch tensors.

    import numpy as np
    import gelu_custom
    gelu_custom.gelu_custom(x)

bfloat16 arrays are uint16 arrays of its bits, or arrays of ml_dtypes.bfloat16.
"""

from opkit.runtime import OperatorPackage

__all__ = ["gelu_custom", "gelu_custom_grad"]

_opkit = OperatorPackage(__name__, __path__, modules=("GELUCustom",))


def gelu_custom(x):
    """Return y.

        y = 0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))

    Inputs are arrays or CPU tensors, all of one kind; the result is of that kind too.
    """
    return _opkit.call("gelu_custom", (x,), ())


def gelu_custom_grad(grad_y, x):
    """Return grad_x, the gradients of the outputs of gelu_custom.

    Inputs are arrays or CPU tensors, all of one kind; the result is of that kind too.
    """
    return _opkit.call(
        "gelu_custom_grad",
        (
            grad_y,
            x,
        ),
        (),
    )


# The torch modules load torch, so they are made when first asked for.
__getattr__ = _opkit.find_module

_opkit.register_torch()
