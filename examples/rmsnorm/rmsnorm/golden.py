"""Reference results in NumPy float64, written out from the formulas of rmsnorm.json."""

from __future__ import annotations

import numpy as np


def _wide(value):
    """Return an array that holds the reference's arithmetic: float64, or int64 for integers."""
    value = np.asarray(value)
    return value.astype(np.int64 if value.dtype.kind in "iu" else np.float64)


def input_shapes(shape):
    """Return the shapes of the inputs that differ from x: gamma is one row."""
    return {"gamma": shape[-1:]}


def rmsnorm(x, gamma, *, epsilon=1e-06):
    """Return the outputs of Rmsnorm.

    y = x * rsqrt(mean(x**2, axis=-1) + epsilon) * gamma
    """
    x = _wide(x)
    gamma = _wide(gamma)
    _shape = np.broadcast_shapes(x.shape, gamma.shape)
    if 0 in _shape:
        return np.zeros(_shape)
    with np.errstate(all="ignore"):
        _result0 = gamma*x/np.sqrt(epsilon + np.mean(x**2, axis=-1, keepdims=True))
    _result0 = np.broadcast_to(_result0, _shape)
    return _result0


def rmsnorm_grad(grad_y, x, gamma, *, epsilon=1e-06):
    """Return the outputs of RmsnormGrad.

    grad_x = (gamma*grad_y - x*mean(gamma*grad_y*x, axis=-1)/(epsilon + mean(x**2, axis=-1)))/sqrt(epsilon + mean(x**2, axis=-1))
    grad_gamma = grad_y*x/sqrt(epsilon + mean(x**2, axis=-1))
    """
    grad_y = _wide(grad_y)
    x = _wide(x)
    gamma = _wide(gamma)
    _shape = np.broadcast_shapes(grad_y.shape, x.shape, gamma.shape)
    if 0 in _shape:
        return np.zeros(_shape), np.zeros(_shape)
    with np.errstate(all="ignore"):
        _result0 = (gamma*grad_y - x*np.mean(gamma*grad_y*x, axis=-1, keepdims=True)/(epsilon + np.mean(x**2, axis=-1, keepdims=True)))/np.sqrt(epsilon + np.mean(x**2, axis=-1, keepdims=True))
        _result1 = grad_y*x/np.sqrt(epsilon + np.mean(x**2, axis=-1, keepdims=True))
    _result0 = np.broadcast_to(_result0, _shape)
    _result1 = np.broadcast_to(_result1, _shape)
    return _result0, _result1
