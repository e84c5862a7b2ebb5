// td's classes for Python: arrays in, arrays out; what C++ throws becomes opkit.errors.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "td/optimisers.h"

namespace py = pybind11;

namespace opkit {
namespace {

using td::DeadlockDetector;
using td::IncrementalKVCacheManager;
using td::MultiCoreLoadBalancer;
using td::SparseMatMulOptimizer;

/// Runs what may throw td's exceptions; those are a caller's mistakes, or a launch that failed.
template <typename Body>
auto translated(Body body) {
  try {
    return body();
  } catch (const std::runtime_error& error) {
    if (dynamic_cast<const py::error_already_set*>(&error) != nullptr) throw;
    raise_usage(error.what());
  } catch (const std::logic_error& error) {
    raise_usage(error.what());
  }
}

template <typename T>
std::vector<T> vector_of(const py::array_t<T, py::array::c_style | py::array::forcecast>& array) {
  return {array.data(), array.data() + array.size()};
}
template <typename T>
py::array_t<T> array_of(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

/// A C-contiguous array of 16-bit elements.
void* halves(const py::array& array, int64_t elements, const char* name, bool is_written = false) {
  if ((array.flags() & py::array::c_style) == 0 || array.itemsize() != 2) {
    raise_usage(std::string(name) + " must be a C-contiguous array of 16-bit elements");
  }
  if (array.size() != elements) {
    raise_usage(std::string(name) + " has " + std::to_string(array.size()) + " elements, expected " +
                std::to_string(elements));
  }
  if (is_written && !array.writeable()) raise_usage(std::string(name) + " cannot be written to");
  return const_cast<void*>(array.data());
}

td::mm::DataType data_type(const std::string& name) {
  if (name == "float16") return td::mm::DataType::FLOAT16;
  if (name == "bfloat16") return td::mm::DataType::BFLOAT16;
  raise_usage("[IncrementalKVCacheManager] dtype is \"" + name + "\": keys and values are float16 or bfloat16");
}

py::dict described(const td::KVCacheStatistics& s) {
  py::dict all;
  all["blocks"] = s.blocks;
  all["free_blocks"] = s.free_blocks;
  all["cached_blocks"] = s.cached_blocks;
  all["used_blocks"] = s.used_blocks;
  all["capacity_tokens"] = s.capacity_tokens;
  all["new_bytes"] = s.new_bytes;
  all["moved_bytes"] = s.moved_bytes;
  all["growths"] = s.growths;
  all["shared_tokens"] = s.shared_tokens;
  all["evicted_blocks"] = s.evicted_blocks;
  return all;
}

void bind_cache(py::module_& module) {
  using Manager = IncrementalKVCacheManager;
  py::class_<Manager>(module, "IncrementalKVCacheManager")
      .def(py::init([](int64_t kv_heads, int64_t head_dim, const std::string& dtype, int64_t block_tokens,
                       int64_t initial_tokens, int64_t max_tokens) {
             td::KVCacheConfig config;
             config.kv_heads = kv_heads;
             config.head_dim = head_dim;
             config.dtype = data_type(dtype);
             config.block_tokens = block_tokens;
             config.initial_tokens = initial_tokens;
             config.max_tokens = max_tokens;
             return translated([&] { return new Manager(config); });
           }),
           py::arg("kv_heads"), py::arg("head_dim"), py::arg("dtype"), py::arg("block_tokens"),
           py::arg("initial_tokens"), py::arg("max_tokens"))
      .def("add_sequence",
           [](Manager& self, const std::vector<int64_t>& prompt) {
             return translated([&] { return self.add_sequence(prompt); });
           })
      .def("fork", [](Manager& self, int64_t id) { return translated([&] { return self.fork(id); }); })
      .def("remove_sequence", [](Manager& self, int64_t id) { translated([&] { self.remove_sequence(id); }); })
      .def("update_kv_cache",
           [](Manager& self, int64_t id, const py::array& k, const py::array& v, int64_t position, int64_t count,
              const std::optional<std::vector<int64_t>>& tokens) {
             const int64_t elements = count * self.config().kv_heads * self.config().head_dim;
             const void* keys = halves(k, elements, "new_k");
             const void* values = halves(v, elements, "new_v");
             if (tokens && static_cast<int64_t>(tokens->size()) != count) {
               raise_usage("[update_kv_cache] " + std::to_string(tokens->size()) + " tokens for " +
                           std::to_string(count) + " rows");
             }
             translated(
                 [&] { self.update_kv_cache(id, keys, values, position, count, tokens ? tokens->data() : nullptr); });
           })
      .def("attention",
           [](const Manager& self, const std::vector<int64_t>& ids, const py::array& q, py::array& out, int64_t q_heads,
              float scale) {
             const int64_t elements = static_cast<int64_t>(ids.size()) * q_heads * self.config().head_dim;
             const void* queries = halves(q, elements, "q");
             void* result = halves(out, elements, "out", true);
             translated([&] {
               const py::gil_scoped_release release;
               self.attention(ids, queries, result, q_heads, scale);
             });
           })
      .def("length", [](const Manager& self, int64_t id) { return translated([&] { return self.length(id); }); })
      .def("block_table",
           [](const Manager& self, int64_t id) { return translated([&] { return self.block_table(id); }); })
      .def("rows",
           [](const Manager& self, int64_t id, bool is_value) {
             const int64_t length = translated([&] { return self.length(id); });
             const int64_t width = self.config().kv_heads * self.config().head_dim;
             py::array_t<uint16_t> all({length, width});
             for (int64_t i = 0; i < length; ++i) {
               std::memcpy(all.mutable_data(i, 0), self.row(id, i, is_value), static_cast<size_t>(width * 2));
             }
             return all;
           })
      .def("capacity", &Manager::capacity)
      .def("sequence_count", &Manager::sequence_count)
      .def("audit", &Manager::audit)
      .def("statistics", [](const Manager& self) { return described(self.statistics()); });
  module.def("copy_pipeline_statistics", [] {
    const td::mm::Statistics s = td::mm::MemoryManager::instance().statistics();
    py::dict all;
    all["copies"] = s.copies;
    all["copies_avoided"] = s.copies_avoided;
    all["cache_hits"] = s.cache_hits;
    all["copy_us"] = s.copy_us;
    all["hidden_us"] = s.hidden_us;
    return all;
  });
  module.def("note_compute", [](double duration_us) { td::mm::MemoryManager::instance().note_compute(duration_us); });
}

using Partition = MultiCoreLoadBalancer::TaskPartition;

void bind_balancer(py::module_& module) {
  py::class_<Partition>(module, "TaskPartition")
      .def_property_readonly("kind",
                             [](const Partition& self) {
                               static const char* names[] = {"regular", "sparse-aware", "adaptive"};
                               return names[static_cast<int>(self.kind)];
                             })
      .def_readonly("block_sizes", &Partition::block_sizes)
      .def_readonly("core_assignments", &Partition::core_assignments)
      .def_readonly("items", &Partition::items)
      .def_readonly("workloads", &Partition::workloads)
      .def_readonly("load_imbalance", &Partition::load_imbalance)
      .def_property_readonly("utilisation", &Partition::utilisation);
  module.def("partition_task", [](const std::string& kind, const std::vector<double>& work, int cores) {
    return translated([&] {
      const MultiCoreLoadBalancer balancer;
      if (kind == "regular") return balancer.regular_partition(work, cores);
      if (kind == "sparse-aware") return balancer.sparse_aware_partition(work, cores);
      if (kind == "adaptive") return balancer.adaptive_partition(work, cores);
      if (kind == "auto") return balancer.partition_task(work, cores);
      throw std::invalid_argument("[MultiCoreLoadBalancer] \"" + kind +
                                  "\" is no kind of partition: regular, sparse-aware, adaptive, auto");
    });
  });
}

td::ComputeStrategy strategy_of(const std::string& name) {
  if (name == "direct") return td::ComputeStrategy::SPARSE_DIRECT;
  if (name == "blocks") return td::ComputeStrategy::BLOCK_SPARSE;
  if (name == "dense") return td::ComputeStrategy::DENSE_FALLBACK;
  raise_usage("\"" + name + "\" is no strategy: direct, blocks, dense");
}
const char* name_of(td::ComputeStrategy strategy) {
  static const char* names[] = {"direct", "blocks", "dense"};
  return names[static_cast<int>(strategy)];
}

void bind_sparse(py::module_& module) {
  using td::SparseTensor;
  using td::SparsityAnalysis;
  py::class_<SparseTensor>(module, "SparseTensor")
      .def(py::init([](int64_t rows, int64_t columns,
                       const py::array_t<int32_t, py::array::c_style | py::array::forcecast>& row_starts,
                       const py::array_t<int32_t, py::array::c_style | py::array::forcecast>& column_indices,
                       const py::array& values) {
        SparseTensor made;
        made.rows = rows;
        made.columns = columns;
        made.row_starts = vector_of<int32_t>(row_starts);
        made.column_indices = vector_of<int32_t>(column_indices);
        const auto* bits = static_cast<const uint16_t*>(halves(values, values.size(), "values"));
        made.values.assign(bits, bits + values.size());
        translated([&] { made.check(); });
        return made;
      }))
      .def_readonly("rows", &SparseTensor::rows)
      .def_readonly("columns", &SparseTensor::columns)
      .def_property_readonly("nonzeros", &SparseTensor::nonzeros);
  py::class_<SparsityAnalysis>(module, "SparsityAnalysis")
      .def_readonly("density", &SparsityAnalysis::density)
      .def_readonly("block_density", &SparsityAnalysis::block_density)
      .def_readonly("block_fill", &SparsityAnalysis::block_fill)
      .def_readonly("blocks", &SparsityAnalysis::blocks);
  py::class_<td::SparseCosts>(module, "SparseCosts")
      .def_readonly("dense_us", &td::SparseCosts::dense_us)
      .def("direct_us", &td::SparseCosts::direct, py::arg("density"))
      .def("blocks_us", &td::SparseCosts::in_blocks, py::arg("block_density"))
      .def_property_readonly("direct_below", &td::SparseCosts::direct_below)
      .def_property_readonly("blocks_below", &td::SparseCosts::blocks_below);
  py::class_<SparseMatMulOptimizer>(module, "SparseMatMulOptimizer")
      .def(py::init<>())
      .def("analyze", &SparseMatMulOptimizer::analyze_sparsity)
      .def("choose_by_article",
           [](const SparseMatMulOptimizer&, const SparsityAnalysis& analysis) {
             return name_of(SparseMatMulOptimizer::choose(analysis));
           })
      .def("choose_by_model",
           [](const SparseMatMulOptimizer&, const SparsityAnalysis& analysis, const td::SparseCosts& costs) {
             return name_of(SparseMatMulOptimizer::choose(analysis, costs));
           })
      .def("strip_direct_below",
           [](const SparseMatMulOptimizer&, const SparsityAnalysis& analysis, const td::SparseCosts& costs) {
             return SparseMatMulOptimizer::strip_direct_below(analysis, costs);
           })
      .def("costs",
           [](SparseMatMulOptimizer& self, int64_t m, int64_t k, int64_t n) {
             return translated([&] {
               const py::gil_scoped_release release;
               return self.costs_of(m, k, n);
             });
           })
      .def(
          "run",
          [](const SparseMatMulOptimizer& self, const std::string& strategy, const SparseTensor& a,
             const SparsityAnalysis& analysis, const py::array& b, py::array& c, int64_t n, double strip_direct_below) {
            const td::ComputeStrategy chosen = strategy_of(strategy);
            const void* right = halves(b, a.columns * n, "b");
            void* result = halves(c, a.rows * n, "c", true);
            translated([&] {
              const py::gil_scoped_release release;
              self.run(chosen, a, analysis, right, n, result, strip_direct_below);
            });
          })
      .def("run_direct", [](const SparseMatMulOptimizer& self, const SparseTensor& a, const py::array& b, py::array& c,
                            int64_t n, int blocks, bool is_even) {
        const void* right = halves(b, a.columns * n, "b");
        void* result = halves(c, a.rows * n, "c", true);
        std::vector<int32_t> rows(static_cast<size_t>(a.rows));
        std::iota(rows.begin(), rows.end(), 0);
        return translated([&] {
          const py::gil_scoped_release release;
          return self.run_direct(a, rows, right, n, result, blocks, is_even);
        });
      });
}

void structured(const py::array_t<int8_t, py::array::c_style>& x, const py::array_t<int8_t, py::array::c_style>& w,
                py::array_t<int32_t, py::array::c_style>& c) {
  translated([&] {
    const int8_t* left = x.data();
    const int8_t* weights = w.data();
    int32_t* result = c.mutable_data();
    const int64_t m = x.shape(0), n = w.shape(0), k = x.shape(1);
    const py::gil_scoped_release release;
    td::structured_matmul(left, weights, m, n, k, result);
  });
}

/// The line of the Python program that runs now, outside opkit and torch.
td::Place python_place() {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return {};
  const py::object frames = py::module_::import("opkit.optimisers").attr("calling_line")();
  if (frames.is_none()) return {};
  const auto place = frames.cast<std::pair<std::string, uint32_t>>();
  return {place.first, place.second, 0};
}

py::list links(const DeadlockDetector::Cycle& cycle) {
  py::list all;
  for (const auto& link : cycle) {
    py::dict row;
    row["stream"] = link.stream_name;
    row["event"] = link.event_name;
    row["wait"] = link.wait.text();
    row["record"] = link.record.text();
    all.append(row);
  }
  return all;
}

/// The report of a circle found elsewhere: (stream, event, where it waits, where that is recorded) of each link.
std::string report_of(const std::vector<std::tuple<std::string, std::string, std::string, std::string>>& rows) {
  DeadlockDetector::Cycle cycle;
  for (const auto& [stream, event, wait, record] : rows) cycle.push_back({0, stream, event, {wait}, {record}});
  return DeadlockDetector::report(cycle);
}

void bind_detector(py::module_& module) {
  module.def("deadlock_report", &report_of);
  py::class_<DeadlockDetector>(module, "DeadlockDetector")
      .def(py::init([] {
        auto* detector = new DeadlockDetector();
        detector->locate_by([](const opkit_stream_note&) { return python_place(); });
        return detector;
      }))
      .def("watch", [](DeadlockDetector& self) { translated([&] { self.watch(); }); })
      .def("stop", &DeadlockDetector::stop)
      .def("on_cycle",
           [](DeadlockDetector& self, const py::function& handler) {
             self.on_cycle([handler](const DeadlockDetector::Cycle& cycle) {
               const py::gil_scoped_acquire acquire;
               handler(links(cycle), DeadlockDetector::report(cycle));
             });
           })
      .def("name_stream", &DeadlockDetector::name_stream)
      .def("name_event", &DeadlockDetector::name_event)
      .def("record",
           [](DeadlockDetector& self, uint64_t stream, uint64_t event) { self.record(stream, event, python_place()); })
      .def("wait",
           [](DeadlockDetector& self, uint64_t stream, uint64_t event) { self.wait(stream, event, python_place()); })
      .def("end_event", &DeadlockDetector::end_event)
      .def("cycles",
           [](const DeadlockDetector& self) {
             py::list all;
             for (const auto& cycle : self.cycles()) all.append(links(cycle));
             return all;
           })
      .def("unrecorded", [](const DeadlockDetector& self) { return links(self.unrecorded()); });
}

}  // namespace

void bind_optimisers(py::module_& module) {
  bind_cache(module);
  bind_balancer(module);
  bind_sparse(module);
  bind_detector(module);
  module.def("structured_matmul", &structured);
  module.def("tell_streams", [](int action, uint64_t stream, uint64_t event) {
    const opkit_stream_note note{static_cast<opkit_stream_action>(action), stream, event, "torch", nullptr};
    opkit_tell_streams(&note);
  });
  module.def("registered_operators", &opkit_registry_describe, "Return every implementation of an operator, as JSON.");
  module.def("shipped_kernels", &opkit_shipped_kernels, "Return the path of the kernels that C++ programs launch.");
}

}  // namespace opkit
