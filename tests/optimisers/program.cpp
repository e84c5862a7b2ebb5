// Every class of td in one program: compiled by any compiler, linked to the emulator's library, run.
#include <cstdio>
#include <sstream>

#include "acl/acl.h"
#include "td/optimisers.h"

#define EXPECT(condition)                               \
  if (!(condition)) {                                   \
    std::printf("line %d: %s\n", __LINE__, #condition); \
    return 1;                                           \
  }

namespace {

constexpr uint16_t kOne = 0x3c00;  // float16

int cache() {
  td::KVCacheConfig config;
  config.kv_heads = 2;
  config.head_dim = 32;
  td::IncrementalKVCacheManager manager(config);
  const int64_t sequence = manager.add_sequence();
  std::vector<uint16_t> k(64, kOne), v(64, kOne), q(64, kOne), out(64);
  for (int64_t position = 0; position < 40; ++position) {
    manager.update_kv_cache(sequence, k.data(), v.data(), position);
  }
  EXPECT(manager.statistics().new_bytes == 40 * 2 * 128);
  EXPECT(td::mm::MemoryManager::instance().statistics().copy_us > 0);
  manager.attention({sequence}, q.data(), out.data(), 2, 0.25f);
  for (const uint16_t bits : out) EXPECT(bits == kOne);
  EXPECT(manager.audit().empty());
  try {
    manager.update_kv_cache(sequence, k.data(), v.data(), 50);
    return 1;
  } catch (const std::out_of_range& error) {
    EXPECT(std::string(error.what()).find("holds 40 tokens") != std::string::npos);
  }
  return 0;
}

int sparse() {
  td::SparseTensor a;
  a.rows = a.columns = 64;
  for (int32_t row = 0; row < 64; ++row) {
    a.column_indices.push_back(63 - row);
    a.values.push_back(kOne);
    a.row_starts.push_back(row + 1);
  }
  std::vector<uint16_t> b(64 * 16), c(64 * 16);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint16_t>(kOne + i / 16);
  td::SparseMatMulOptimizer optimizer;
  optimizer.sparse_matmul(a, b.data(), 16, c.data());
  for (size_t i = 0; i < b.size(); ++i) EXPECT(c[i] == b[(63 - i / 16) * 16 + i % 16]);
  EXPECT(td::SparseMatMulOptimizer::choose(optimizer.analyze_sparsity(a)) == td::ComputeStrategy::SPARSE_DIRECT);
  EXPECT(opkit_are_launches_timed() == 0);
  const auto blocks = td::SparseTensor::from_blocks(4, 4, 2, {0, 1, 2}, {1, 0}, {1, 2, 0, 4, 5, 6, 7, 8});
  EXPECT((blocks.row_starts == std::vector<int32_t>{0, 2, 3, 5, 7}));
  EXPECT((blocks.column_indices == std::vector<int32_t>{2, 3, 3, 0, 1, 0, 1}));
  EXPECT((blocks.values == std::vector<uint16_t>{1, 2, 4, 5, 6, 7, 8}));
  return 0;
}

int streams() {
  aclrtSetDevice(0);
  aclrtStream copy, compute;
  aclrtEvent copied, computed;
  aclrtCreateStream(&copy);
  aclrtCreateStream(&compute);
  aclrtCreateEvent(&copied);
  aclrtCreateEvent(&computed);
  td::DeadlockDetector detector;
  std::string report;
  detector.on_cycle([&](const td::DeadlockDetector::Cycle& cycle) { report = td::DeadlockDetector::report(cycle); });
  detector.name_stream(reinterpret_cast<uint64_t>(copy), "copy");
  detector.name_stream(reinterpret_cast<uint64_t>(compute), "compute");
  detector.watch();
  aclrtStreamWaitEvent(copy, computed);
  aclrtRecordEvent(copied, copy);
  aclrtStreamWaitEvent(compute, copied);
  EXPECT(report.empty());
  EXPECT(detector.unrecorded().size() == 1);
  aclrtRecordEvent(computed, compute);
  std::printf("%s", report.c_str());
  EXPECT(report.find("deadlock risk: copy -> compute -> copy") == 0);
  EXPECT(report.find("program.cpp:") != std::string::npos);
  detector.stop();
  aclrtDestroyStream(copy);
  aclrtDestroyStream(compute);
  aclrtDestroyEvent(copied);
  aclrtDestroyEvent(computed);
  std::ostringstream text;
  using Action = td::DeadlockDetector::Action;
  const auto cycles = td::DeadlockDetector::check_deadlock({{Action::Wait, "a", "x", {}},
                                                            {Action::Wait, "b", "y", {}},
                                                            {Action::Wait, "c", "z", {}},
                                                            {Action::Record, "a", "z", {}},
                                                            {Action::Record, "b", "x", {}},
                                                            {Action::Record, "c", "y", {}}},
                                                           text);
  EXPECT(cycles.size() == 1 && cycles[0].size() == 3);
  EXPECT(text.str().find("on one stream") != std::string::npos);
  return 0;
}

struct Twice : td::NpuOpImpl {
  std::string refuse(const td::TensorArgs& inputs) const override {
    return inputs.size() == 1 ? "" : "it takes one tensor";
  }
  void execute(const td::TensorArgs& inputs, const td::TensorArgs& outputs, const td::OpAttributes& attrs) override {
    const opkit_attr* factor = attrs.find("factor");
    const double by = factor == nullptr ? 2 : factor->float_value;
    if (by == 0) throw std::runtime_error("the factor is zero");
    for (int64_t i = 0; i < inputs[0].shape[0]; ++i) {
      static_cast<float*>(outputs[0].data)[i] = static_cast<float>(by * static_cast<float*>(inputs[0].data)[i]);
    }
  }
};
struct Never : td::NpuOpImpl {
  std::string refuse(const td::TensorArgs&) const override { return "it never does"; }
  void execute(const td::TensorArgs&, const td::TensorArgs&, const td::OpAttributes&) override {}
};

REGISTER_OPERATOR("npu::twice", Twice);

int operators() {
  auto& registry = td::OperatorRegistry::instance();
  float x[3] = {1, 2, 3}, y[3] = {};
  const int64_t shape[] = {3};
  const opkit_tensor in{x, shape, 1, 0}, out{y, shape, 1, 0};
  registry.call("npu::twice", {in}, {out});
  EXPECT(y[2] == 6);
  // One for this type goes first, and one that refuses is passed over.
  registry.register_aten_op("npu::twice", "never", std::make_shared<Never>(), {0, "", 0});
  EXPECT(std::string(registry.dispatch_operator("npu::twice", {in})->name) == "Twice");
  registry.register_aten_op("npu::twice", "for the chip", std::make_shared<Twice>(), {-1, opkit_chip_name(), -1});
  EXPECT(std::string(registry.dispatch_operator("npu::twice", {in})->name) == "for the chip");
  EXPECT(std::string(registry.dispatch_operator("npu::twice", {in}, {"Ascend310P3"})->name) == "Twice");
  try {
    registry.register_aten_op("npu::twice", "again", std::make_shared<Twice>());
    return 1;
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    std::printf("%s\n", text.c_str());
    EXPECT(text.find("already registered") != std::string::npos);
    EXPECT(text.find("program.cpp") != text.rfind("program.cpp"));
  }
  opkit_attr zero{};
  zero.name = "factor";
  try {
    registry.call("npu::twice", {in}, {out}, {&zero, 1});
    return 1;
  } catch (const std::runtime_error& error) {
    EXPECT(std::string(error.what()) == "[npu::twice] the factor is zero");
  }
  try {
    registry.call("npu::none", {in}, {out});
    return 1;
  } catch (const std::runtime_error& error) {
    EXPECT(std::string(error.what()).find("has no implementation") != std::string::npos);
  }
  return 0;
}

}  // namespace

int main() {
  const int failed = cache() + sparse() + streams() + operators();
  if (failed == 0) std::puts("right");
  return failed;
}
