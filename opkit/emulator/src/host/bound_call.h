/// One call after its inputs and attributes were checked against the OpDef: what host functions see of it.
#pragma once

#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "call_error.h"
#include "exe_graph/runtime/extended_kernel_context.h"
#include "opkit/op_call.h"
#include "sched/signals.h"
#include "signature.h"

namespace opkit::host {

/// The attributes of a call in OpDef order, in the form that RuntimeAttrs hands out.
class BoundAttrs {
 public:
  /// Takes given values and defaults; throws CallError for unknown, missing or mistyped ones.
  BoundAttrs(const Operator& entry, const opkit_call& call);
  const gert::RuntimeAttrs& attrs() const { return *attrs_; }

 private:
  const void* store(const AttrValue& value);

  // Lists, so that what pointers_ points at stays where it is; one that stays empty allocates nothing.
  std::list<int64_t> ints_;
  std::list<float> floats_;
  std::list<bool> bools_;
  std::list<std::string> strings_;
  std::list<std::vector<int64_t>> int_lists_;
  std::list<std::vector<float>> float_lists_;
  std::list<std::unique_ptr<bool[]>> bool_lists_;
  std::list<gert::ContinuousVector> vectors_;
  std::list<std::vector<gert::ContinuousVector>> inner_lists_;
  std::list<gert::ContinuousVectorVector> list_lists_;
  std::vector<const void*> pointers_;
  std::unique_ptr<gert::RuntimeAttrs> attrs_;
};

class BoundCall {
 public:
  /// Throws CallError when the inputs or attributes do not fit the operator. The signature has to outlive the call.
  BoundCall(const Operator& entry, const Signature& signature, const opkit_call& call);
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;

  /// Runs InferShape and InferDataType, and settles the column. Throws CallError.
  void infer();

  /// Takes the caller's outputs instead, and settles the column; infers where the call does not have them all. Throws
  /// CallError.
  void take_given();

  const gert::ComputeNodeInfo& node() const { return *node_; }
  const Operator& entry() const { return entry_; }
  const Signature& signature() const { return signature_; }

  /// Inferred outputs that are wanted, and the OpDef output that each belongs to.
  const std::vector<gert::Tensor>& outputs() const { return outputs_; }
  const Param& output_param(size_t index) const { return signature_.outputs[output_params_[index]]; }

  /// The dtypes that name the kernel variant: inputs, then outputs; those of absent inputs as the OpDef pairs them.
  std::vector<int32_t> variant_dtypes() const;

  /// Present inputs, the OpDef input that each belongs to, and where its data lies.
  const std::vector<gert::Tensor>& inputs() const { return inputs_; }
  const Param& input_param(size_t index) const { return signature_.inputs[input_params_[index]]; }
  void* input_data(size_t index) const { return input_data_[index]; }

  /// The output of the same name as a present input, which is the same tensor: the kernel changes it in place.
  std::optional<size_t> in_place_output(size_t input) const;

 private:
  void bind_inputs(const opkit_call& call);
  void bind_input(size_t ir_index, const opkit_tensor& given);
  void count_outputs(const opkit_call& call);
  void choose_column();
  void infer_shapes();
  /// The caller's shapes, of all outputs; fails without them.
  void take_shapes_of_failed_inference();
  /// How often host functions have asked for what the operator has not.
  size_t asked_past_last() const { return node_->asked_past_last() + attrs_.attrs().asked_past_last(); }
  /// Where InferShape does nothing, the caller's shapes count.
  void take_shapes_of_idle_inference();
  void infer_dtypes();
  void take_given_dtypes();
  /// `who` says in messages where the outputs' types are from.
  void settle_column(const char* who);
  const gert::Tensor* same_named_input(size_t output) const;
  /// What a caller may do where the shape of an output is not inferred.
  std::string advice(size_t output) const;
  bool gives_shape(size_t output) const;
  bool gives_dtype(size_t output) const;
  gert::Shape given_shape(size_t output) const;
  [[noreturn]] void fail_here(const std::string& message) const;
  [[noreturn]] void refuse_here(const std::string& message) const;

  const Operator& entry_;
  const Signature& signature_;
  BoundAttrs attrs_;
  std::vector<std::optional<int32_t>> input_dtypes_;  ///< by OpDef input; the tensors of a dynamic one share it
  std::vector<gert::Tensor> inputs_;                  ///< present ones
  std::vector<size_t> input_params_;                  ///< by tensor of inputs_
  std::vector<void*> input_data_;
  std::vector<gert::Tensor> outputs_;
  std::vector<opkit_shape> expected_;  ///< as the caller gives them, each rank and type -1 where it does not; or empty
  std::vector<size_t> output_params_;  ///< by tensor of outputs_
  std::vector<gert::AnchorInstanceInfo> ir_inputs_;
  std::vector<gert::AnchorInstanceInfo> ir_outputs_;
  std::unique_ptr<gert::ComputeNodeInfo> node_;
  size_t column_ = 0;
};

/// Such as "(2, 3)".
std::string shape_text(const gert::Shape& shape);

/// What a host function logged, or that it logged nothing, as the end of a message.
std::string logged_reason();

/// What a host function logged before it crashed, and what to look for, as the end of a message.
std::string logged_before_crash();

/// Runs a host function of the user's. An exception that leaves it, and a crash of it, become a CallError.
template <typename Function, typename Context>
uint32_t call_host(const std::string& op_type, const char* what, Function function, Context* context) {
  struct Call {
    Function function;
    Context* context;
    uint32_t status;
    std::optional<std::string> thrown;
  } call = {function, context, 0, std::nullopt};
  const auto run = [](void* opaque) {
    auto& it = *static_cast<Call*>(opaque);
    try {
      it.status = it.function(it.context);
    } catch (...) {
      it.thrown = exception_text();
    }
  };
  const std::optional<int> crash = crash_of(run, &call);
  if (!crash.has_value() && !call.thrown.has_value()) return call.status;
  // The operator's fault, whatever it was called with: as a fault of its kernel.
  const std::string where = "[" + op_type + "] its " + what + " function ";
  if (crash.has_value()) fail(OPKIT_FAULT, where + crash_text(*crash) + logged_before_crash());
  fail(OPKIT_FAULT, where + "throws " + *call.thrown);
}

}  // namespace opkit::host
