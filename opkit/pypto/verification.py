"""Results compared with what a program says that they should be: `set_verify_golden_data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .diagnostics import warn
from .location import here

__all__ = ["FUNCTIONS", "check_goldens"]

# What `pass_verify_error_tol` is unless it is set: relative, absolute.
_TOLERANCE = (1e-3, 1e-3)

_goldens: list[Any] = []
"""One for each tensor of the program that runs next; None where a tensor is an input."""


def _set_verify_golden_data(
    in_out_tensors: Sequence[Any] | None = None, goldens: Sequence[Any] | None = None
) -> None:
    """Say what the outputs of the program that runs next should be, one for each tensor of it."""
    del in_out_tensors
    _goldens[:] = goldens or ()


def check_goldens(tensors: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Warn of outputs that differ from what the program said that they should be.

    Args:
        tensors: what a program ran on, in its order, after it.
        options: what `set_verify_options` takes; nothing is compared without `enable_pass_verify`.
    """
    if not _goldens or not options.get("enable_pass_verify"):
        return
    goldens = list(_goldens)
    _goldens.clear()
    tolerance = options.get("pass_verify_error_tol") or _TOLERANCE
    relative, absolute = tolerance if len(tolerance) == 2 else _TOLERANCE
    for (name, tensor), golden in zip(tensors.items(), goldens, strict=False):
        if golden is None:
            continue
        found, wanted = _numbers(tensor), _numbers(golden)
        if found.shape != wanted.shape:
            warn(f"{name} has the shape {found.shape}, and its golden {wanted.shape}", here())
            continue
        wrong = ~np.isclose(found, wanted, rtol=relative, atol=absolute, equal_nan=True)
        if wrong.any():
            place = tuple(int(at) for at in np.argwhere(wrong)[0])
            warn(
                f"{name}: {int(wrong.sum())} of {wrong.size} elements differ from the golden by"
                f" more than {relative} of it and {absolute}, first {list(place)}:"
                f" {found[place]} for {wanted[place]}",
                here(),
            )


def _numbers(tensor: Any) -> np.ndarray[Any, Any]:
    if type(tensor).__module__ == "torch":
        tensor = tensor.detach().cpu().double().numpy()
    return np.asarray(tensor, np.float64)


FUNCTIONS = {"set_verify_golden_data": _set_verify_golden_data}
