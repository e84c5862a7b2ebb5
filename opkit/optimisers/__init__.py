"""Optimisers of programs: a cache of keys and values, sparse products, balanced cores, deadlocks.

The classes are those of `include/td`, which C++ programs link; this is their Python.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.optimisers.balance import MultiCoreLoadBalancer, TaskPartition
    from opkit.optimisers.deadlock import Cycle, DeadlockDetector, Link, Task, calling_line
    from opkit.optimisers.fuzzing import MixReport, random_mix
    from opkit.optimisers.kv_cache import CacheStatistics, IncrementalKVCacheManager
    from opkit.optimisers.registry import RegisteredOperator, registered_operators
    from opkit.optimisers.sparse import (
        ARTICLE_THRESHOLDS,
        Costs,
        SparseMatMulOptimizer,
        SparseMatrix,
        SparsityAnalysis,
        Thresholds,
    )
    from opkit.optimisers.structured import structured_matmul

__all__ = [
    "ARTICLE_THRESHOLDS",
    "CacheStatistics",
    "Costs",
    "Cycle",
    "DeadlockDetector",
    "IncrementalKVCacheManager",
    "Link",
    "MixReport",
    "MultiCoreLoadBalancer",
    "RegisteredOperator",
    "SparseMatMulOptimizer",
    "SparseMatrix",
    "SparsityAnalysis",
    "Task",
    "TaskPartition",
    "Thresholds",
    "calling_line",
    "random_mix",
    "registered_operators",
    "structured_matmul",
]

_HOMES = {
    "balance": ("MultiCoreLoadBalancer", "TaskPartition"),
    "deadlock": ("Cycle", "DeadlockDetector", "Link", "Task", "calling_line"),
    "fuzzing": ("MixReport", "random_mix"),
    "kv_cache": ("CacheStatistics", "IncrementalKVCacheManager"),
    "registry": ("RegisteredOperator", "registered_operators"),
    "sparse": (
        "ARTICLE_THRESHOLDS",
        "Costs",
        "SparseMatMulOptimizer",
        "SparseMatrix",
        "SparsityAnalysis",
        "Thresholds",
    ),
    "structured": ("structured_matmul",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    # On first use: what they import loads NumPy and the compiled module.
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value
