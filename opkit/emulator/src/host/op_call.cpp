// The operator call's C functions: they catch everything and keep what to say about it.
#include "opkit/op_call.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "bound_call.h"
#include "dtypes.h"
#include "launch_run.h"
#include "library.h"
#include "tiling_run.h"

namespace opkit::host {
namespace {

thread_local std::string last_error;
thread_local FaultReport fault_of_last_call;

opkit_status report(opkit_status status, const std::string& message) {
  last_error = message;
  return status;
}

template <typename Body>
opkit_status guarded(Body body) {
  try {
    return body();
  } catch (const CallError& error) {
    return report(error.status, error.message);
  } catch (const std::bad_alloc&) {
    return report(OPKIT_MISSING, "this machine has not enough memory for the call");
  } catch (const std::exception& error) {
    return report(OPKIT_INTERNAL, std::string("opkit failed: ") + error.what());
  } catch (...) {
    return report(OPKIT_INTERNAL, "opkit failed for an unknown reason");
  }
}

void check_call(const opkit_library* library, const opkit_call* call) {
  if (library == nullptr) fail(OPKIT_USAGE, "the library is null: opkit_library_open has failed or was not called");
  if (call == nullptr) fail(OPKIT_USAGE, "the call is null");
}

/// The caller's outputs must be what the operator infers: its kernel writes that many bytes.
void check_outputs(const BoundCall& call, const opkit_tensor* outputs, size_t count) {
  const std::string where = "[" + call.entry().type + "] ";
  if (count != call.outputs().size()) {
    fail(OPKIT_USAGE,
         where + "has " + std::to_string(call.outputs().size()) + " outputs, not " + std::to_string(count));
  }
  for (size_t i = 0; i < count; ++i) {
    const gert::Tensor& wanted = call.outputs()[i];
    const opkit_tensor& given = outputs[i];
    const std::string name = "output \"" + call.signature().outputs[i].name + "\" ";
    if (given.dtype != wanted.GetDataType()) {
      fail(OPKIT_USAGE, where + name + "is " + dtype_name(wanted.GetDataType()) + ", not " + dtype_name(given.dtype));
    }
    gert::Shape shape;
    for (int32_t axis = 0; axis < given.rank; ++axis) shape.AppendDim(given.shape[axis]);
    if (given.rank < 0 || shape != wanted.GetOriginShape()) {
      fail(OPKIT_USAGE,
           where + name + "has the shape " + shape_text(wanted.GetOriginShape()) + ", not " + shape_text(shape));
    }
    if (given.data == nullptr && shape.GetShapeSize() != 0)
      fail(OPKIT_USAGE, where + name + "has elements but no data");
  }
}

opkit_status infer(opkit_library* library, const char* op_type, const opkit_call* call, opkit_shape* outputs,
                   size_t* output_count) {
  check_call(library, call);
  if (output_count == nullptr) fail(OPKIT_USAGE, "output_count is null");
  BoundCall bound(find_operator(*library, op_type), Device::get().chip().soc_config, *call);
  bound.infer();
  const size_t room = *output_count;
  *output_count = bound.outputs().size();
  if (room < *output_count) {
    fail(OPKIT_USAGE, "[" + std::string(op_type) + "] has " + std::to_string(*output_count) +
                          " outputs, but there is room for " + std::to_string(room));
  }
  for (size_t i = 0; i < *output_count; ++i) {
    const gert::Tensor& tensor = bound.outputs()[i];
    outputs[i] = {};
    outputs[i].rank = static_cast<int32_t>(tensor.GetOriginShape().GetDimNum());
    outputs[i].dtype = tensor.GetDataType();
    for (int32_t axis = 0; axis < outputs[i].rank; ++axis) {
      outputs[i].dims[axis] = tensor.GetOriginShape()[static_cast<size_t>(axis)];
    }
  }
  return OPKIT_OK;
}

opkit_status run(opkit_library* library, const char* op_type, const opkit_call* call, const opkit_tensor* outputs,
                 size_t output_count) {
  check_call(library, call);
  const DeviceConfig config = Device::get().config();
  BoundCall bound(find_operator(*library, op_type), config.chip->soc_config, *call);
  bound.infer();
  check_outputs(bound, outputs, output_count);
  const bool all_empty = std::all_of(bound.outputs().begin(), bound.outputs().end(),
                                     [](const gert::Tensor& tensor) { return tensor.GetShapeSize() == 0; });
  // Source: OpAICoreDef, LaunchWithZeroEleOutputTensors.
  if (all_empty && !bound.entry().launches_with_empty_outputs) return OPKIT_OK;
  const KernelEntry& kernel = find_kernel(*library, bound.entry().type, config.chip->npu_arch, bound.variant_dtypes());
  TilingResult tiling = run_tiling(*library, bound, *config.chip);
  const LaunchRecord record = run_kernel(kernel, bound, outputs, tiling, config.poison);
  if (record.fault.fault == Fault::None) return OPKIT_OK;
  fault_of_last_call = record.fault;
  return report(OPKIT_FAULT, fault_text(record.fault));
}

}  // namespace

const FaultReport& last_fault() { return fault_of_last_call; }

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
  return opkit::host::guarded([&] { return opkit::host::run(library, op_type, call, outputs, output_count); });
}

const char* opkit_last_error(void) { return opkit::host::last_error.c_str(); }
