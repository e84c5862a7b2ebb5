"""Element-wise operators of PyTorch in the compiler's: one table for what is compiled and for the
device's own kernels.

A row's function takes an `AtenCall` and then what the ATen operator takes, with tensors as values
of the program under construction, and returns a value. `opkit.graph` applies rows to the programs
that `torch.compile` hands over; the formulas of the device `npu` are traced from them when its
library is built, with values in place of the numbers as well.
"""

from __future__ import annotations

from .call import AtenCall, Refused
from .elementwise import LARGEST_POWER
from .elementwise import ROWS as ATEN_ELEMENTWISE

__all__ = ["ATEN_ELEMENTWISE", "LARGEST_POWER", "AtenCall", "Refused"]
