/// Which core does which part of a task: equal parts, the largest first, or neighbouring parts of equal work.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

namespace td {

class MultiCoreLoadBalancer {
 public:
  enum class Kind { Regular, SparseAware, Adaptive };

  struct TaskPartition {
    Kind kind = Kind::Regular;
    std::vector<int64_t> block_sizes;         ///< by core: how many items it has
    std::vector<int> core_assignments;        ///< by item: its core
    std::vector<std::vector<int64_t>> items;  ///< by core: its items, in the order that it takes them
    std::vector<double> workloads;            ///< by core
    float load_imbalance = 0;                 ///< largest distance of a core's work from the mean, over the mean

    /// Mean work of the cores over that of the busiest: what part of the time they work.
    double utilisation() const {
      const double most = workloads.empty() ? 0 : *std::max_element(workloads.begin(), workloads.end());
      if (most == 0) return 1;
      return std::accumulate(workloads.begin(), workloads.end(), 0.0) / static_cast<double>(workloads.size()) / most;
    }

    /// For a kernel: where each core's items begin in `order`, and one number behind the last.
    std::vector<int32_t> starts() const {
      std::vector<int32_t> all{0};
      for (const auto& own : items) all.push_back(all.back() + static_cast<int32_t>(own.size()));
      return all;
    }
    std::vector<int32_t> order() const {
      std::vector<int32_t> all;
      for (const auto& own : items) all.insert(all.end(), own.begin(), own.end());
      return all;
    }
  };

  /// Equal work: equal parts. Work that differs by more than a part in ten: largest first, or neighbouring items where
  /// those come within a hundredth of it, because neighbours share what they read.
  /// Throws std::invalid_argument for negative work or no core.
  TaskPartition partition_task(const std::vector<double>& work, int num_cores) const {
    check(work, num_cores);
    if (work.empty()) return regular_partition(work, num_cores);
    const auto [least, most] = std::minmax_element(work.begin(), work.end());
    if (*most - *least <= 0.1 * *most) return regular_partition(work, num_cores);
    TaskPartition largest_first = sparse_aware_partition(work, num_cores);
    TaskPartition neighbours = adaptive_partition(work, num_cores);
    return neighbours.utilisation() >= 0.99 * largest_first.utilisation() ? neighbours : largest_first;
  }

  /// As many items for each core, in order: what a kernel does that knows nothing of the work.
  TaskPartition regular_partition(const std::vector<double>& work, int num_cores) const {
    check(work, num_cores);
    const auto count = static_cast<int64_t>(work.size());
    const int64_t share = (count + num_cores - 1) / num_cores;
    std::vector<int> cores(work.size());
    for (int64_t i = 0; i < count; ++i)
      cores[static_cast<size_t>(i)] = static_cast<int>(i / std::max<int64_t>(share, 1));
    return made(Kind::Regular, work, std::move(cores), num_cores);
  }

  /// The largest item that is left goes to the core with the least work. Its busiest core has at most 4/3 of the best
  /// partition's (Graham, 1969).
  TaskPartition sparse_aware_partition(const std::vector<double>& work, int num_cores) const {
    check(work, num_cores);
    std::vector<size_t> by_work(work.size());
    std::iota(by_work.begin(), by_work.end(), size_t{0});
    std::stable_sort(by_work.begin(), by_work.end(), [&](size_t a, size_t b) { return work[a] > work[b]; });
    using Core = std::pair<double, int>;
    std::priority_queue<Core, std::vector<Core>, std::greater<Core>> idle;
    for (int core = 0; core < num_cores; ++core) idle.emplace(0.0, core);
    std::vector<int> cores(work.size());
    std::vector<size_t> order;
    for (const size_t item : by_work) {
      const auto [load, core] = idle.top();
      idle.pop();
      cores[item] = core;
      idle.emplace(load + work[item], core);
    }
    return made(Kind::SparseAware, work, std::move(cores), num_cores);
  }

  /// Neighbouring items for each core, cut so that the busiest core has as little as such a partition allows.
  TaskPartition adaptive_partition(const std::vector<double>& work, int num_cores) const {
    check(work, num_cores);
    double low = work.empty() ? 0 : *std::max_element(work.begin(), work.end());
    double high = std::accumulate(work.begin(), work.end(), 0.0);
    const auto cores_for = [&](double limit, std::vector<int>* cores) {
      int core = 0;
      double load = 0;
      for (size_t i = 0; i < work.size(); ++i) {
        if (load + work[i] > limit && load > 0) ++core, load = 0;
        load += work[i];
        if (cores != nullptr) (*cores)[i] = core;
      }
      return core + 1;
    };
    for (int step = 0; step < 60 && low < high; ++step) {
      const double middle = low + (high - low) / 2;
      (cores_for(middle, nullptr) <= num_cores ? high : low) = middle;
    }
    std::vector<int> cores(work.size());
    cores_for(high, &cores);
    return made(Kind::Adaptive, work, std::move(cores), num_cores);
  }

 private:
  static void check(const std::vector<double>& work, int num_cores) {
    if (num_cores < 1) {
      throw std::invalid_argument("[MultiCoreLoadBalancer] num_cores is " + std::to_string(num_cores) +
                                  ", expected 1 or more");
    }
    for (size_t i = 0; i < work.size(); ++i) {
      if (std::isfinite(work[i]) && work[i] >= 0) continue;
      throw std::invalid_argument("[MultiCoreLoadBalancer] the work of item " + std::to_string(i) + " is " +
                                  std::to_string(work[i]) + ", expected a number from 0 up");
    }
  }

  static TaskPartition made(Kind kind, const std::vector<double>& work, std::vector<int> cores, int num_cores) {
    TaskPartition partition;
    partition.kind = kind;
    partition.items.resize(static_cast<size_t>(num_cores));
    partition.workloads.resize(static_cast<size_t>(num_cores));
    for (size_t i = 0; i < work.size(); ++i) {
      const auto core = static_cast<size_t>(cores[i]);
      partition.items[core].push_back(static_cast<int64_t>(i));
      partition.workloads[core] += work[i];
    }
    for (const auto& own : partition.items) partition.block_sizes.push_back(static_cast<int64_t>(own.size()));
    partition.core_assignments = std::move(cores);
    const double mean = std::accumulate(work.begin(), work.end(), 0.0) / num_cores;
    for (const double load : partition.workloads) {
      if (mean > 0)
        partition.load_imbalance = std::max(partition.load_imbalance, static_cast<float>(std::abs(load - mean) / mean));
    }
    return partition;
  }
};

}  // namespace td
