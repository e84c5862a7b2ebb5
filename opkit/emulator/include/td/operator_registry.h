/// Implementations of operators by name: for any device, a kind of device, or a data type, each with a priority. The
/// rows are those of opkit/operator_registry.h, which torch's device dispatches by as well.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/direct_launch.h"
#include "opkit/operator_registry.h"

namespace td {

enum OpPriority { OP_PRIORITY_FALLBACK = -100, OP_PRIORITY_DEFAULT = 0, OP_PRIORITY_PREFERRED = 100 };

/// What an operator gets: dense tensors, and attributes by name.
using TensorArgs = std::vector<opkit_tensor>;
struct OpAttributes {
  const opkit_attr* data = nullptr;
  size_t count = 0;
  const opkit_attr* find(const std::string& name) const {
    for (size_t i = 0; i < count; ++i) {
      if (name == data[i].name) return &data[i];
    }
    return nullptr;
  }
};

/// One way to compute an operator.
class NpuOpImpl {
 public:
  virtual ~NpuOpImpl() = default;
  /// Empty where it takes the call, else why not: the next one is asked then.
  virtual std::string refuse(const TensorArgs& inputs) const {
    (void)inputs;
    return "";
  }
  /// Computes the outputs, whose memory is there. Throws where it cannot.
  virtual void execute(const TensorArgs& inputs, const TensorArgs& outputs, const OpAttributes& attrs) = 0;
};

/// Which calls an implementation is for.
struct OpScope {
  int priority = OP_PRIORITY_DEFAULT;
  std::string device;  ///< a chip such as Ascend910B2; empty: any
  int dtype = -1;      ///< of the first tensor, a ge::DataType number; -1: any
};

/// The device that a call is for.
struct DeviceContext {
  std::string device;  ///< empty: the emulated one
};

class OperatorRegistry {
 public:
  static OperatorRegistry& instance() {
    static auto* registry = new OperatorRegistry();
    return *registry;
  }

  /// Throws std::runtime_error, "Operator already registered" with both places, where the table has one of the same
  /// priority.
  void register_aten_op(const std::string& op, const std::string& name, std::shared_ptr<NpuOpImpl> implementation,
                        const OpScope& scope = {}, const char* file = __builtin_FILE(),
                        uint32_t line = __builtin_LINE()) {
    if (implementation == nullptr)
      throw std::invalid_argument("[OperatorRegistry] " + op + ": the implementation is null");
    opkit_operator row{};
    row.op = op.c_str();
    row.name = name.c_str();
    row.priority = scope.priority;
    row.device = scope.device.empty() ? nullptr : scope.device.c_str();
    row.dtype = scope.dtype;
    row.file = file;
    row.line = line;
    row.kind = OPKIT_OPERATOR_CALLABLE;
    row.self = implementation.get();
    row.refuse = &refuse;
    row.run = &run;
    if (opkit_registry_add(&row) != OPKIT_OK)
      throw std::runtime_error(std::string("[OperatorRegistry] ") + opkit_last_error());
    const std::lock_guard<std::mutex> guard(lock_);
    owned_[implementation.get()] = std::move(implementation);
  }

  /// Takes an implementation out of every table. It lives on: a call may be using it.
  bool unregister(const NpuOpImpl* implementation) { return opkit_registry_remove(implementation) != 0; }

  /// The implementation that serves a call: the first that takes it of those for its type, for its device, and for all.
  /// Throws std::runtime_error that says why each refused.
  const opkit_operator* dispatch_operator(const std::string& op, const TensorArgs& inputs,
                                          const DeviceContext& context = {}) const {
    const opkit_operator* rows[kMost];
    const uint32_t id = opkit_registry_id(op.c_str());
    const char* chip = context.device.empty() ? nullptr : context.device.c_str();
    const size_t count = opkit_registry_candidates(id, inputs.empty() ? -1 : inputs[0].dtype, chip, rows, kMost);
    std::string why;
    for (size_t i = 0; i < count && i < kMost; ++i) {
      if (rows[i]->kind != OPKIT_OPERATOR_CALLABLE) {
        why += "\n  " + std::string(rows[i]->name) + ": serves torch's tensors only";
        continue;
      }
      const char* refusal =
          rows[i]->refuse == nullptr ? nullptr : rows[i]->refuse(rows[i]->self, inputs.data(), inputs.size());
      if (refusal == nullptr) return rows[i];
      why += "\n  " + std::string(rows[i]->name) + ": " + refusal;
    }
    throw std::runtime_error(
        "[OperatorRegistry] " + op +
        (count == 0 ? " has no implementation" : " is refused by all of its implementations:" + why));
  }

  /// Chooses and computes.
  void call(const std::string& op, const TensorArgs& inputs, const TensorArgs& outputs,
            const OpAttributes& attrs = {}) const {
    const opkit_operator* row = dispatch_operator(op, inputs);
    if (row->run(row->self, inputs.data(), inputs.size(), outputs.data(), outputs.size(), attrs.data, attrs.count) !=
        OPKIT_OK) {
      throw std::runtime_error("[" + op + "] " + opkit_last_error());
    }
  }

 private:
  static constexpr size_t kMost = 64;

  static const char* refuse(void* self, const opkit_tensor* inputs, size_t count) {
    static thread_local std::string text;
    text = static_cast<NpuOpImpl*>(self)->refuse(TensorArgs(inputs, inputs + count));
    return text.empty() ? nullptr : text.c_str();
  }
  static opkit_status run(void* self, const opkit_tensor* inputs, size_t input_count, const opkit_tensor* outputs,
                          size_t output_count, const opkit_attr* attrs, size_t attr_count) {
    try {
      static_cast<NpuOpImpl*>(self)->execute(TensorArgs(inputs, inputs + input_count),
                                             TensorArgs(outputs, outputs + output_count), {attrs, attr_count});
      return OPKIT_OK;
    } catch (const std::exception& error) {
      return opkit_registry_fail(OPKIT_FAULT, error.what());
    }
  }

  std::mutex lock_;
  std::map<const NpuOpImpl*, std::shared_ptr<NpuOpImpl>> owned_;
};

}  // namespace td

#define OPKIT_TD_JOIN2(a, b) a##b
#define OPKIT_TD_JOIN(a, b) OPKIT_TD_JOIN2(a, b)
/// Registers an implementation when the program or library is loaded: REGISTER_OPERATOR("npu::gelu_v2", GeluImpl);
#define REGISTER_OPERATOR(op, Implementation, ...)                                                               \
  static const bool OPKIT_TD_JOIN(opkit_registered_, __COUNTER__) = [] {                                         \
    ::td::OperatorRegistry::instance().register_aten_op(op, #Implementation, std::make_shared<Implementation>(), \
                                                        ::td::OpScope{__VA_ARGS__});                             \
    return true;                                                                                                 \
  }()
