/// Registering an operator's functions apart from its OpDef. Source: basic data structures API, OpImplRegisterV2.
///
///     IMPL_OP_OPTILING(AddCustom).Tiling(TilingFunc).TilingParse<CompileInfo>(TilingPrepare);
///     IMPL_OP_INFERSHAPE(AddCustom).InferShape(InferShape).InferDataType(InferDataType);
///
/// Kernels share tiling headers with host code that include it. There is nothing to register in a kernel, so there it
/// declares nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#ifndef OPKIT_KERNEL_CONSTANTS

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/infer_shape_range_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "opkit/host/abi.h"
#include "opkit/host/prelude.h"

namespace gert {

enum class TilingPlacement : uint32_t { TILING_ON_HOST, TILING_ON_AICPU };

class OpImplRegisterV2 {
 public:
  using InferShapeKernelFunc = ge::graphStatus (*)(InferShapeContext*);
  using InferShapeRangeKernelFunc = ge::graphStatus (*)(InferShapeRangeContext*);
  using InferDataTypeKernelFunc = ge::graphStatus (*)(InferDataTypeContext*);
  using TilingKernelFunc = ge::graphStatus (*)(TilingContext*);
  using TilingParseKernelFunc = ge::graphStatus (*)(TilingParseContext*);

  explicit OpImplRegisterV2(const char* op_type) : op_type_(op_type) {}

  OpImplRegisterV2& InferShape(InferShapeKernelFunc function) {
    auto functions = empty();
    functions.infer_shape = function;
    return submit(functions);
  }
  /// Accepted and never called: opkit always knows the exact shapes.
  OpImplRegisterV2& InferShapeRange(InferShapeRangeKernelFunc) { return *this; }
  OpImplRegisterV2& InferDataType(InferDataTypeKernelFunc function) {
    auto functions = empty();
    functions.infer_data_type = function;
    return submit(functions);
  }
  /// Accepted and never called: it shortens the names of the vendor's kernel binaries.
  OpImplRegisterV2& GenSimplifiedKey(ge::graphStatus (*)(TilingContext*, char*)) { return *this; }
  /// Accepted and never called: they launch further operators inside the graph engine.
  template <typename... Functions>
  OpImplRegisterV2& OpExecuteFunc(Functions...) {
    return *this;
  }
  template <typename... Functions>
  OpImplRegisterV2& Op2StageExecuteFuncs(Functions...) {
    return *this;
  }
  template <typename Function>
  OpImplRegisterV2& OpSelectFormat(Function) {
    return *this;
  }
  OpImplRegisterV2& InferOutDataTypeSameWithFirstInput() {
    return InferDataType(
        [](InferDataTypeContext* context) { return context->SetOutputDataType(0, context->GetInputDataType(0)); });
  }
  /// What the OpDef says by the method of that name.
  OpImplRegisterV2& OutputShapeDependOnCompute(std::initializer_list<int32_t>) { return *this; }

  OpImplRegisterV2& Tiling(TilingKernelFunc function, size_t = 0) {
    auto functions = empty();
    functions.tiling = function;
    return submit(functions);
  }

  /// `function` fills a CompileInfo once an operator and chip; tiling reads it by GetCompileInfo.
  template <typename CompileInfo>
  OpImplRegisterV2& TilingParse(TilingParseKernelFunc function) {
    auto functions = empty();
    functions.tiling_parse = function;
    functions.create_compile_info = []() -> void* { return new CompileInfo(); };
    return submit(functions);
  }

  /// These inputs' values are read by InferShape and tiling.
  OpImplRegisterV2& InputsDataDependency(std::initializer_list<int32_t> inputs) { return depend(inputs); }
  OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs) { return depend(inputs); }
  /// Where the vendor runs tiling makes no difference here.
  OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs,
                                               std::initializer_list<TilingPlacement>) {
    return depend(inputs);
  }

  /// An attribute behind those of the OpDef, which host functions read and callers do not give.
  OpImplRegisterV2& PrivateAttr(const char* name) { return add_private(name, nullptr); }
  OpImplRegisterV2& PrivateAttr(const char* name, int64_t value) {
    opkit_attr attr = {};
    attr.int_value = value;
    return add_private(name, &attr);
  }
  OpImplRegisterV2& PrivateAttr(const char* name, bool value) {
    opkit_attr attr = {};
    attr.kind = OPKIT_ATTR_BOOL;
    attr.int_value = value ? 1 : 0;
    return add_private(name, &attr);
  }
  OpImplRegisterV2& PrivateAttr(const char* name, float value) {
    opkit_attr attr = {};
    attr.kind = OPKIT_ATTR_FLOAT;
    attr.float_value = static_cast<double>(value);
    return add_private(name, &attr);
  }
  OpImplRegisterV2& PrivateAttr(const char* name, const char* value) {
    opkit_attr attr = {};
    attr.kind = OPKIT_ATTR_STRING;
    attr.string_value = value;
    return add_private(name, &attr);
  }
  OpImplRegisterV2& PrivateAttr(const char* name, const std::vector<int64_t>& values) {
    opkit_attr attr = {};
    attr.kind = OPKIT_ATTR_LIST_INT;
    attr.int_list = values.data();
    attr.list_length = values.size();
    return add_private(name, &attr);
  }

 private:
  opkit::host::OpFunctions empty() const {
    opkit::host::OpFunctions functions = {};
    functions.abi_version = opkit::host::kHostAbiVersion;
    functions.op_type = op_type_;
    return functions;
  }

  OpImplRegisterV2& submit(const opkit::host::OpFunctions& functions) {
    opkit_register_functions(&functions);
    return *this;
  }

  OpImplRegisterV2& add_private(const char* name, const opkit_attr* value) {
    opkit::host::AttrDescription attr = {};
    attr.name = name;
    attr.has_default = value != nullptr;
    if (value != nullptr) attr.default_value = *value;
    auto functions = empty();
    functions.private_attr = &attr;
    return submit(functions);
  }

  OpImplRegisterV2& depend(std::initializer_list<int32_t> inputs) {
    for (int32_t input : inputs) {
      const size_t index = static_cast<size_t>(input);
      auto functions = empty();
      functions.value_dependent_inputs = &index;
      functions.value_dependent_count = 1;
      submit(functions);
    }
    return *this;
  }

  const char* op_type_;
};

}  // namespace gert

#define OPKIT_JOIN_INNER(a, b) a##b
#define OPKIT_JOIN(a, b) OPKIT_JOIN_INNER(a, b)

#define IMPL_OP(op_type)                                                                              \
  [[maybe_unused]] static ::gert::OpImplRegisterV2 OPKIT_JOIN(opkit_impl_##op_type##_, __COUNTER__) = \
      ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP_OPTILING(op_type) IMPL_OP(op_type)
#define IMPL_OP_INFERSHAPE(op_type) IMPL_OP(op_type)
#define DEVICE_IMPL_OP_OPTILING(op_type) IMPL_OP(op_type)

#endif  // OPKIT_KERNEL_CONSTANTS
