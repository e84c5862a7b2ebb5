"""Reference results in NumPy float64, written out from the formulas of gelu_custom.json."""

from __future__ import annotations

import numpy as np


def _wide(value):
    """Return an array that holds the reference's arithmetic: float64, or int64 for integers."""
    value = np.asarray(value)
    return value.astype(np.int64 if value.dtype.kind in "iu" else np.float64)


def _sigmoid(u):
    """Return 1 / (1 + exp(-u)), without overflow."""
    small = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, small) / (1.0 + small)


def gelu_custom(x):
    """Return the outputs of GELUCustom.

    y = 0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))
    """
    x = _wide(x)
    _shape = np.broadcast_shapes(x.shape)
    if 0 in _shape:
        return np.zeros(_shape)
    with np.errstate(all="ignore"):
        _result0 = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    _result0 = np.broadcast_to(_result0, _shape)
    return _result0


def gelu_custom_tuned(x):
    """Return the outputs of GELUCustomTuned: the same function, another kernel."""
    return gelu_custom(x)


def gelu_custom_grad(grad_y, x):
    """Return the outputs of GELUCustomGrad.

    grad_x = grad_y*sigmoid(1.5957691216057308*(x + 0.044715*x**3))*(x*sigmoid(-1.5957691216057308*(x + 0.044715*x**3))*(0.21406444881780076*x**2 + 1.5957691216057308) + 1)
    """
    grad_y = _wide(grad_y)
    x = _wide(x)
    _shape = np.broadcast_shapes(grad_y.shape, x.shape)
    if 0 in _shape:
        return np.zeros(_shape)
    with np.errstate(all="ignore"):
        _result0 = (
            grad_y
            * _sigmoid(1.5957691216057308 * (x + 0.044715 * x**3))
            * (
                x
                * _sigmoid(-1.5957691216057308 * (x + 0.044715 * x**3))
                * (0.21406444881780076 * x**2 + 1.5957691216057308)
                + 1
            )
        )
    _result0 = np.broadcast_to(_result0, _shape)
    return _result0
