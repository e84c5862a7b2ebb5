"""Which core does which part of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opkit.optimisers.native import native

__all__ = ["MultiCoreLoadBalancer", "TaskPartition"]


@dataclass(frozen=True)
class TaskPartition:
    """Items of work, dealt to cores."""

    kind: str
    """`regular`, `sparse-aware` or `adaptive`."""
    block_sizes: tuple[int, ...]
    """By core: how many items it has."""
    core_assignments: tuple[int, ...]
    """By item: its core."""
    items: tuple[tuple[int, ...], ...]
    """By core: its items."""
    workloads: tuple[float, ...]
    """By core."""
    load_imbalance: float
    """Largest distance of a core's work from the mean, over the mean."""
    utilisation: float
    """Mean work of the cores over that of the busiest."""


class MultiCoreLoadBalancer:
    """Partitions of work that differs from item to item; `include/td/load_balancer.h` in C++."""

    def partition_task(self, work: Sequence[float], num_cores: int) -> TaskPartition:
        """Choose: equal parts for equal work, neighbours where they balance, else largest first.

        Raises:
            UsageError: negative work, or no core.
        """
        return _partition("auto", work, num_cores)

    def regular_partition(self, work: Sequence[float], num_cores: int) -> TaskPartition:
        """Give each core as many items, in order."""
        return _partition("regular", work, num_cores)

    def sparse_aware_partition(self, work: Sequence[float], num_cores: int) -> TaskPartition:
        """Give the largest item that is left to the core with the least work."""
        return _partition("sparse-aware", work, num_cores)

    def adaptive_partition(self, work: Sequence[float], num_cores: int) -> TaskPartition:
        """Give each core neighbouring items, cut so that the busiest has as little as can be."""
        return _partition("adaptive", work, num_cores)


def _partition(kind: str, work: Sequence[float], num_cores: int) -> TaskPartition:
    made = native().partition_task(kind, [float(value) for value in work], num_cores)
    return TaskPartition(
        kind=made.kind,
        block_sizes=tuple(made.block_sizes),
        core_assignments=tuple(made.core_assignments),
        items=tuple(tuple(own) for own in made.items),
        workloads=tuple(made.workloads),
        load_imbalance=made.load_imbalance,
        utilisation=made.utilisation,
    )
