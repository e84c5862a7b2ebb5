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
        _result0 = x * (1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon)) * gamma
    _result0 = np.broadcast_to(_result0, _shape)
    return _result0


def rmsnorm_grad(grad_y, x, gamma, *, epsilon=1e-06):
    """Return the outputs of RmsnormGrad.

    grad_x = (grad_y*gamma - mean(grad_y*x*gamma, axis=-1)*x/sqrt(mean(x**2, axis=-1) + epsilon)**2)/sqrt(mean(x**2, axis=-1) + epsilon)
    grad_gamma = grad_y*x/sqrt(mean(x**2, axis=-1) + epsilon)
    """
    grad_y = _wide(grad_y)
    x = _wide(x)
    gamma = _wide(gamma)
    _shape = np.broadcast_shapes(grad_y.shape, x.shape, gamma.shape)
    if 0 in _shape:
        return np.zeros(_shape), np.zeros(_shape)
    with np.errstate(all="ignore"):
        _result0 = (grad_y * gamma - np.mean(grad_y * x * gamma, axis=-1, keepdims=True) * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon)**2) / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon)
        _result1 = grad_y * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon)
    _result0 = np.broadcast_to(_result0, _shape)
    _result1 = np.broadcast_to(_result1, _shape)
    return _result0, _result1
