// The operator call's C functions: they catch everything and keep what to say about it.
#include "opkit/op_call.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "bound_call.h"
#include "dtypes.h"
#include "guarded.h"
#include "launch_run.h"
#include "library.h"
#include "tiling_run.h"

namespace opkit::host {
namespace {

thread_local std::string last_error;
thread_local FaultReport fault_of_last_call;
thread_local bool last_was_refused = false;

void check_call(const opkit_library* library, const opkit_call* call) {
  if (library == nullptr) fail(OPKIT_USAGE, "the library is null: opkit_library_open has failed or was not called");
  if (call == nullptr) fail(OPKIT_USAGE, "the call is null");
}

/// The caller's outputs must be what the operator infers: its kernel writes that many bytes.
void check_outputs(const BoundCall& call, const opkit_tensor* outputs, size_t count) {
  const auto refuse = [&](const std::string& what) { fail(OPKIT_USAGE, "[" + call.entry().type + "] " + what); };
  if (count != call.outputs().size()) {
    refuse("has " + std::to_string(call.outputs().size()) + " outputs, not " + std::to_string(count));
  }
  for (size_t i = 0; i < count; ++i) {
    const gert::Tensor& wanted = call.outputs()[i];
    const opkit_tensor& given = outputs[i];
    const auto refuse_this = [&](const std::string& what) {
      refuse("output \"" + call.output_param(i).name + "\" " + what);
    };
    if (given.dtype != wanted.GetDataType()) {
      refuse_this("is " + dtype_name(wanted.GetDataType()) + ", not " + dtype_name(given.dtype));
    }
    gert::Shape shape;
    for (int32_t axis = 0; axis < given.rank; ++axis) shape.AppendDim(given.shape[axis]);
    if (given.rank < 0 || shape != wanted.GetOriginShape()) {
      refuse_this("has the shape " + shape_text(wanted.GetOriginShape()) + ", not " + shape_text(shape));
    }
    if (given.data == nullptr && shape.GetShapeSize() != 0) refuse_this("has elements but no data");
  }
}

opkit_shape described(const gert::Tensor& tensor) {
  opkit_shape shape = {};
  shape.rank = static_cast<int32_t>(tensor.GetOriginShape().GetDimNum());
  shape.dtype = tensor.GetDataType();
  for (int32_t axis = 0; axis < shape.rank; ++axis) {
    shape.dims[axis] = tensor.GetOriginShape()[static_cast<size_t>(axis)];
  }
  return shape;
}

opkit_status infer(opkit_library* library, const char* op_type, const opkit_call* call, opkit_shape* outputs,
                   size_t* output_count) {
  check_call(library, call);
  if (output_count == nullptr) fail(OPKIT_USAGE, "output_count is null");
  const Operator& entry = find_operator(*library, op_type);
  BoundCall bound(entry, find_signature(*library, entry, Device::get().chip().soc_config), *call);
  bound.infer();
  const size_t room = *output_count;
  *output_count = bound.outputs().size();
  if (room < *output_count) {
    fail(OPKIT_USAGE, "[" + std::string(op_type) + "] has " + std::to_string(*output_count) +
                          " outputs, but there is room for " + std::to_string(room));
  }
  for (size_t i = 0; i < *output_count; ++i) outputs[i] = described(bound.outputs()[i]);
  return OPKIT_OK;
}

}  // namespace

opkit_status report(opkit_status status, const std::string& message, bool is_refusal) {
  last_error = message;
  last_was_refused = is_refusal;
  return status;
}

opkit_status report_fault(const FaultReport& fault) {
  fault_of_last_call = fault;
  return report(OPKIT_FAULT, fault_text(fault));
}

opkit_status report_crash(const std::string& message) {
  fault_of_last_call = FaultReport();
  fault_of_last_call.fault = Fault::Crash;
  fault_of_last_call.message = message;
  return report(OPKIT_FAULT, message);
}

}  // namespace opkit::host

struct opkit_plan {
  opkit_library& library;
  opkit::DeviceConfig config;  ///< of the device when the call was bound
  opkit::host::BoundCall call;
  std::vector<opkit_shape> outputs;
  std::optional<opkit::host::TilingResult> tiling;

  opkit_plan(opkit_library& of, const char* op_type, const opkit_call& with, bool has_outputs = false)
      : opkit_plan(of, opkit::host::find_operator(of, op_type), with, has_outputs) {}

  opkit_plan(opkit_library& of, const opkit::host::Operator& entry, const opkit_call& with, bool has_outputs)
      : library(of),
        config(opkit::Device::get().config()),
        call(entry, opkit::host::find_signature(of, entry, config.chip->soc_config), with) {
    has_outputs ? call.take_given() : call.infer();
    outputs.reserve(call.outputs().size());
    for (const gert::Tensor& tensor : call.outputs()) outputs.push_back(opkit::host::described(tensor));
  }

  /// Nothing to compute: the kernel is not launched. Source: OpAICoreDef, LaunchWithZeroEleOutputTensors.
  bool is_empty() const {
    const auto& tensors = call.outputs();
    return !call.entry().launches_with_empty_outputs &&
           std::all_of(tensors.begin(), tensors.end(),
                       [](const gert::Tensor& tensor) { return tensor.GetShapeSize() == 0; });
  }

  void tile() {
    if (!tiling.has_value()) tiling = opkit::host::run_tiling(library, call, *config.chip);
  }

  opkit_status run(const opkit_tensor* given, size_t count, void* workspace) {
    using namespace opkit::host;
    check_outputs(call, given, count);
    if (is_empty()) return OPKIT_OK;
    if (&opkit::Device::get().chip() != config.chip) {
      fail(OPKIT_USAGE, "[" + call.entry().type + "] the chip was changed after the call was prepared");
    }
    tile();
    const opkit::KernelEntry kernel =
        find_kernel(library, call.entry().type, config.chip->npu_arch, call.variant_dtypes(), tiling->tiling_key);
    const bool poisons = opkit::Device::get().config().poison;
    const opkit::LaunchRecord record = run_kernel(kernel, call, given, *tiling, workspace, poisons, outputs);
    if (record.fault.fault == opkit::Fault::None) return OPKIT_OK;
    return report_fault(record.fault);
  }
};

namespace opkit::host {

const FaultReport& last_fault() { return fault_of_last_call; }

bool last_call_was_refused() { return last_was_refused; }

}  // namespace opkit::host

opkit_status opkit_library_open(const char* folder, opkit_library** library) {
  return opkit::host::guarded([&] {
    if (library == nullptr) opkit::host::fail(OPKIT_USAGE, "opkit_library_open needs a place for the library");
    *library = &opkit::host::open_library(folder);
    return OPKIT_OK;
  });
}

opkit_status opkit_infer(opkit_library* library, const char* op_type, const opkit_call* call, opkit_shape* outputs,
                         size_t* output_count) {
  return opkit::host::guarded([&] { return opkit::host::infer(library, op_type, call, outputs, output_count); });
}

opkit_status opkit_run(opkit_library* library, const char* op_type, const opkit_call* call, const opkit_tensor* outputs,
                       size_t output_count) {
  return opkit::host::guarded([&] {
    opkit::host::check_call(library, call);
    return opkit_plan(*library, op_type, *call).run(outputs, output_count, nullptr);
  });
}

opkit_status opkit_prepare(opkit_library* library, const char* op_type, const opkit_call* call, opkit_plan** plan) {
  return opkit::host::guarded([&] {
    opkit::host::check_call(library, call);
    if (plan == nullptr) opkit::host::fail(OPKIT_USAGE, "opkit_prepare needs a place for the plan");
    *plan = new opkit_plan(*library, op_type, *call);
    return OPKIT_OK;
  });
}

opkit_status opkit_prepare_given(opkit_library* library, const char* op_type, const opkit_call* call,
                                 opkit_plan** plan) {
  return opkit::host::guarded([&] {
    opkit::host::check_call(library, call);
    if (plan == nullptr) opkit::host::fail(OPKIT_USAGE, "opkit_prepare_given needs a place for the plan");
    *plan = new opkit_plan(*library, op_type, *call, true);
    return OPKIT_OK;
  });
}

const opkit_shape* opkit_plan_outputs(const opkit_plan* plan, size_t* output_count) {
  *output_count = plan->outputs.size();
  return plan->outputs.data();
}

opkit_status opkit_plan_check_outputs(const opkit_plan* plan, const opkit_tensor* outputs, size_t output_count) {
  return opkit::host::guarded([&] {
    opkit::host::check_outputs(plan->call, outputs, output_count);
    return OPKIT_OK;
  });
}

opkit_status opkit_plan_workspace(opkit_plan* plan, uint64_t* size_bytes) {
  return opkit::host::guarded([&] {
    *size_bytes = 0;
    if (plan->is_empty()) return OPKIT_OK;
    plan->tile();
    *size_bytes = plan->tiling->workspace_bytes;
    return OPKIT_OK;
  });
}

opkit_status opkit_plan_tiling(opkit_plan* plan, opkit_tiling* tiling) {
  return opkit::host::guarded([&] {
    if (plan->is_empty()) {
      opkit::host::fail(OPKIT_USAGE, "[" + plan->call.entry().type + "] its outputs are empty: nothing is launched");
    }
    plan->tile();
    const auto& set = *plan->tiling;
    *tiling = {set.tiling_key, set.block_dim, set.data.data(), set.data.size()};
    return OPKIT_OK;
  });
}

opkit_status opkit_plan_run(opkit_plan* plan, const opkit_tensor* outputs, size_t output_count, void* workspace) {
  return opkit::host::guarded([&] { return plan->run(outputs, output_count, workspace); });
}

void opkit_plan_destroy(opkit_plan* plan) { delete plan; }

const char* opkit_last_error(void) { return opkit::host::last_error.c_str(); }

opkit_status opkit_launch_direct(const opkit_direct_launch* launch) {
  return opkit::host::guarded([&] {
    std::string error;
    const opkit_status status = opkit::host::launch_direct(*launch, error);
    if (status != OPKIT_OK) opkit::host::report(status, error);
    return status;
  });
}
