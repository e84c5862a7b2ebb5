"""How long a call of each operator takes here, from one element to a million.

These are times of this machine, which emulates the kernel; `opkit profile` gives the modelled chip's.

    python benchmarks/benchmark_gelu_custom.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

# The package of this checkout, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import gelu_custom  # noqa: E402

SIZES = [(1,), (1024,), (64, 1024), (1024, 1024)]

# By operator: the data type and the kind of each input, and the attributes.
CALLS = {
    "gelu_custom": (
        [("float16", "whole")],
        {},
    ),
}


def median_us(function, seconds: float = 0.5) -> float:
    """Return the median time of a call, after one to warm up."""
    function()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


def main() -> None:
    for name, (inputs, attributes) in CALLS.items():
        for size in SIZES:
            arguments = []
            for dtype, kind in inputs:
                array = np.ones(size[:-1] if kind == "row" else size, dtype)
                arguments.append([array, array] if kind == "list" else array)
            call = getattr(gelu_custom, name)
            try:
                took = median_us(lambda: call(*arguments, **attributes))
            except (
                Exception
            ) as error:  # a shape that the operator does not take is no reason to stop
                print(f"{name:24} {str(size):16} {type(error).__name__}: {error}")
                continue
            print(f"{name:24} {str(size):16} {took:10.1f} us")


if __name__ == "__main__":
    main()
