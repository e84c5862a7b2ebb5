// Forms that write a given tensor, served by their function and a copy where no kernel writes it itself.
#include "runtime/forms.h"

#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <set>

#include "aten/parts.h"

namespace opkit::npu {
namespace {

using c10::FunctionSchema;

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool writes(const FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), is_written);
}

/// Whether two operators take the same, but for the tensors of `out=`.
bool take_the_same(const FunctionSchema& function, const FunctionSchema& form) {
  size_t count = 0;
  for (const c10::Argument& argument : form.arguments()) {
    if (argument.is_out()) continue;
    if (count == function.arguments().size()) return false;
    const c10::Argument& other = function.arguments()[count++];
    if (other.name() != argument.name() || *other.type() != *argument.type()) return false;
  }
  return count == function.arguments().size() && function.returns().size() == form.returns().size();
}

/// Whether PyTorch makes it of other operators, or the device of something else.
bool is_made(const OperatorHandle& op) {
  using c10::DispatchKey;
  for (const DispatchKey key : {DispatchKey::CompositeImplicitAutograd, DispatchKey::CompositeExplicitAutograd,
                                DispatchKey::CompositeExplicitAutogradNonFunctional, DispatchKey::PrivateUse1}) {
    if (op.hasKernelForDispatchKey(key)) return true;
  }
  return false;
}

std::string name_of_form(const c10::OperatorName& name) {
  const std::string base = name.name.substr(sizeof("aten::") - 1);
  return name.overload_name.empty() ? base : base + "." + name.overload_name;
}

c10::OperatorName operator_name(const std::string& op) {
  const size_t dot = op.find('.');
  return {"aten::" + op.substr(0, dot), dot == std::string::npos ? "" : op.substr(dot + 1)};
}

/// All overloads by the name that they have in common.
const std::multimap<std::string, c10::OperatorName>& overloads() {
  static const auto* found = [] {
    auto* names = new std::multimap<std::string, c10::OperatorName>();
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) names->emplace(name.name, name);
    return names;
  }();
  return *found;
}

/// Their `out=` may not be what they read, as PyTorch has it: the CPU refuses it.
const std::set<std::string> kApart{"aten::take", "aten::masked_select", "aten::index_select", "aten::nonzero"};

/// The function's results, moved to the tensors that the form writes. Where the types differ, the CPU says what fits.
const char* serve_form(const OperatorHandle& function, const OperatorHandle& form, Stack* stack) {
  const auto& arguments = form.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  std::vector<at::Tensor> written;
  Stack given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const IValue& value = (*stack)[first + i];
    if (is_written(arguments[i])) written.push_back(value.toTensor());
    if (!arguments[i].is_out()) given.push_back(value);
  }
  for (const at::Tensor& out : written) {
    if (!on_device(out) || !kind_of(out.scalar_type())) return kNoType;
    if (!out.is_non_overlapping_and_dense()) return kLayout;
    for (const IValue& value : given) {
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      if (value.toTensor().is_same(out) && kApart.count(function.schema().name()) == 0) continue;
      if (on_device(value.toTensor()) && may_overlap(value.toTensor(), out)) return "source and target overlap";
    }
  }
  const c10::DeviceGuard guard(written.front().device());
  function.callBoxed(&given);
  for (size_t i = 0; i < written.size(); ++i) {
    const at::Tensor& made = given[i].toTensor();
    if (made.scalar_type() != written[i].scalar_type()) return "a target of another type than the result";
    const bool is_in_place = !arguments[arguments.size() - 1].is_out();
    if (is_in_place && made.sizes() != written[i].sizes()) return "a target of another shape than the result";
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const at::Tensor& made = given[i].toTensor();
    at::native::resize_output(written[i], made.sizes());
    if (made.numel() > 0) written[i].copy_(made);
  }
  torch::jit::drop(*stack, arguments.size());
  for (const at::Tensor& out : written) stack->emplace_back(out);
  return kDecomposed;
}

/// Functions that change more than their results: called again on the CPU, they would change it twice.
const std::set<std::string> kWithState{"native_batch_norm"};

}  // namespace

std::vector<std::string> written_forms(const std::string& op) {
  const c10::OperatorName own = operator_name(op);
  const auto function = c10::Dispatcher::singleton().findSchema(own);
  std::vector<std::string> found;
  if (!function.has_value() || writes(function->schema())) return found;
  for (const std::string& base : {own.name, own.name + "_"}) {
    const auto range = overloads().equal_range(base);
    for (auto at = range.first; at != range.second; ++at) {
      const auto form = c10::Dispatcher::singleton().findSchema(at->second);
      if (!form.has_value() || !writes(form->schema()) || is_made(*form)) continue;
      if (take_the_same(function->schema(), form->schema())) found.push_back(name_of_form(at->second));
    }
  }
  return found;
}

void add_forms() {
  const std::vector<std::string> natives = native_operators();
  const std::set<std::string> known(natives.begin(), natives.end());
  for (const std::string& op : natives) {
    if (kWithState.count(op) != 0) continue;
    for (const std::string& name : written_forms(op)) {
      if (known.count(name) != 0) continue;
      const OperatorHandle function = c10::Dispatcher::singleton().findSchemaOrThrow(
          operator_name(op).name.c_str(), operator_name(op).overload_name.c_str());
      add_native(name, "composed",
                 [function](const OperatorHandle& form, Stack* stack) { return serve_form(function, form, stack); });
    }
  }
}

}  // namespace opkit::npu
