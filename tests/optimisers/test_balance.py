"""Partitions of work over cores, and a kernel that runs by one."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.optimisers import MultiCoreLoadBalancer, SparseMatMulOptimizer
from opkit.profiling import Profile

BALANCER = MultiCoreLoadBalancer()


def irregular(count: int, seed: int = 0) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).pareto(1.5, count) + 0.1]


@pytest.mark.parametrize("kind", ["regular", "sparse_aware", "adaptive"])
def test_every_item_has_one_core(kind: str) -> None:
    work = irregular(100)
    partition = getattr(BALANCER, f"{kind}_partition")(work, 7)
    assert sorted(item for own in partition.items for item in own) == list(range(100))
    assert sum(partition.block_sizes) == 100
    for core, own in enumerate(partition.items):
        assert partition.workloads[core] == pytest.approx(sum(work[item] for item in own))
        assert all(partition.core_assignments[item] == core for item in own)
    mean = sum(work) / 7
    worst = max(abs(load - mean) for load in partition.workloads)
    assert partition.load_imbalance == pytest.approx(worst / mean, rel=1e-5)
    assert partition.utilisation == pytest.approx(mean / max(partition.workloads))


def test_the_largest_first_is_within_a_third_of_the_best() -> None:
    for seed in range(20):
        work = irregular(60, seed)
        partition = BALANCER.sparse_aware_partition(work, 5)
        bound = max(sum(work) / 5, max(work))
        assert max(partition.workloads) <= 4 / 3 * bound + 1e-9


def test_neighbours_are_cut_as_well_as_neighbours_can_be() -> None:
    assert BALANCER.adaptive_partition([1, 2, 3, 4, 5, 6], 3).items == ((0, 1, 2), (3, 4), (5,))


def test_the_kind_is_chosen_by_the_work() -> None:
    assert BALANCER.partition_task([5.0] * 48, 8).kind == "regular"
    assert BALANCER.partition_task([9, 1, 1, 1, 9, 1, 1, 1, 9, 5, 1, 1], 4).kind == "sparse-aware"
    assert BALANCER.partition_task([4, 4, 2, 2, 4], 4).utilisation == 1.0
    assert BALANCER.partition_task([float(1 + i % 7) for i in range(4000)], 4).kind == "adaptive"


def test_fewer_items_than_cores_and_none() -> None:
    assert BALANCER.partition_task([3.0], 4).block_sizes == (1, 0, 0, 0)
    assert BALANCER.partition_task([], 4).utilisation == 1


def test_wrong_work_is_refused() -> None:
    with pytest.raises(UsageError, match="num_cores is 0"):
        BALANCER.partition_task([1.0], 0)
    with pytest.raises(UsageError, match=r"the work of item 1 is -2"):
        BALANCER.partition_task([1.0, -2.0], 2)


def test_a_kernel_runs_by_the_partition_and_is_faster_for_it() -> None:
    generator = np.random.default_rng(0)
    counts = np.minimum((generator.pareto(1.2, 256) * 6).astype(int) + 1, 200)
    counts = np.sort(counts)[::-1]
    a = np.zeros((256, 256), np.float16)
    for row, count in enumerate(counts):
        a[row, generator.permutation(256)[:count]] = 1
    b = generator.normal(size=(256, 1024)).astype(np.float16)
    optimizer = SparseMatMulOptimizer()
    used, results = {}, {}
    for is_even in (True, False):
        with Profile(event_limit=0) as session:
            results[is_even] = optimizer.direct_on(a, b, 16, is_even=is_even)
        cycles = [core.cycles for core in session.timelines[0].cores]
        assert len(cycles) == 16
        used[is_even] = sum(cycles) / len(cycles) / max(cycles)
    assert np.array_equal(results[True], results[False])
    assert used[False] > 0.9
    assert used[False] > used[True] + 0.2
