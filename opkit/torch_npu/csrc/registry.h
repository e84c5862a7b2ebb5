/// Which kernel serves an operator: three tables (any device, a kind of device, a data type), each with priorities.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace opkit::npu {

/// Serves the call on the stack, arguments replaced by results; or leaves the stack as it is and says why it cannot.
using Serve = std::function<const char*(const c10::OperatorHandle&, c10::Stack*)>;

struct Kernel {
  std::string op;                        ///< such as aten::add.out
  std::string name;                      ///< of the kernel, for messages
  int priority = 0;                      ///< the highest that can serve a call does
  std::string device;                    ///< the chip that it is for; empty: any
  std::optional<c10::ScalarType> dtype;  ///< of the first tensor; none: any
  Serve serve;
};

class Registry {
 public:
  static Registry& get();

  /// Throws where a kernel of the same table and priority is there: the message names both.
  void add(Kernel kernel);

  /// The kernels for a call, first choice first: those for its type, those for its chip, the others; by priority.
  std::vector<const Kernel*> candidates(const std::string& op, std::optional<c10::ScalarType> dtype) const;

 private:
  using Rows = std::map<std::string, std::vector<Kernel>>;
  Rows global_;
  std::map<std::string, Rows> by_device_;
  std::map<c10::ScalarType, Rows> by_type_;
};

/// Registers a kernel of opkit for an operator of ATen, in the registry and with PyTorch's dispatcher.
void add_native(const std::string& op, const char* kernel, Serve serve);

/// Registers what add_native has collected with the dispatcher: once, when the library starts.
void register_natives();

}  // namespace opkit::npu
