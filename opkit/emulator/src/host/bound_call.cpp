// Binding a call to an operator, and inferring its outputs.
#include "bound_call.h"

#include <algorithm>

#include "dtypes.h"
#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"

namespace opkit::host {
namespace {

constexpr int32_t kMaxRank = sizeof(opkit_shape::dims) / sizeof(int64_t);
constexpr int64_t kMaxElements = int64_t{1} << 48;  // more than any host has, and no size in bytes overflows

bool is_absent(const opkit_tensor& tensor) { return tensor.data == nullptr && tensor.rank < 0; }

ge::Format format_of(const Param& param, size_t column) {
  if (param.formats.empty()) return ge::FORMAT_ND;
  return static_cast<ge::Format>(param.formats[std::min(column, param.formats.size() - 1)]);
}

void set_shape(gert::Tensor& tensor, const gert::Shape& shape) {
  tensor.MutableOriginShape() = shape;
  tensor.MutableStorageShape() = shape;
}

std::string given_dtypes(const std::vector<std::optional<int32_t>>& dtypes) {
  std::string text;
  for (const auto& dtype : dtypes) text += (text.empty() ? "" : ", ") + (dtype ? dtype_name(*dtype) : "absent");
  return text;
}

}  // namespace

std::string shape_text(const gert::Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.GetDimNum(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.GetDimNum() == 1 ? ",)" : ")");
}

std::string logged_reason() {
  return logged_errors().empty() ? "; it logged no reason: OP_LOGE (log/log.h) would appear here"
                                 : ":\n" + logged_errors();
}

BoundCall::BoundCall(const Operator& entry, const std::string& soc_config, const opkit_call& call)
    : entry_(entry), call_(call), signature_(signature_for(entry, soc_config)), attrs_(entry, call) {
  bind_inputs(call);
  outputs_.resize(signature_.outputs.size());
  for (size_t i = 0; i < outputs_.size(); ++i) ir_outputs_.emplace_back(static_cast<uint32_t>(i), 1);
  gert::ComputeNodeInfo::State state = {};
  state.name = state.type = entry.type.c_str();
  state.inputs = inputs_.data();
  state.input_count = inputs_.size();
  state.outputs = outputs_.data();
  state.output_count = outputs_.size();
  state.ir_inputs = ir_inputs_.data();
  state.ir_input_count = ir_inputs_.size();
  state.ir_outputs = ir_outputs_.data();
  state.ir_output_count = ir_outputs_.size();
  state.attrs = &attrs_.attrs();
  node_ = std::make_unique<gert::ComputeNodeInfo>(state);
}

void BoundCall::fail_here(const std::string& message) const { fail(OPKIT_USAGE, "[" + entry_.type + "] " + message); }

const opkit_tensor* BoundCall::given_input(size_t ir_index) const {
  const bool is_present = ir_index < call_.input_count && !is_absent(call_.inputs[ir_index]);
  return is_present ? &call_.inputs[ir_index] : nullptr;
}

void BoundCall::bind_inputs(const opkit_call& call) {
  for (const auto* params : {&signature_.inputs, &signature_.outputs}) {
    for (const Param& param : *params) {
      if (param.presence == Presence::Dynamic) fail_here(param.name + " is dynamic, which opkit does not support yet");
    }
  }
  const size_t wanted = signature_.inputs.size();
  if (call.input_count > wanted) {
    fail_here("takes " + std::to_string(wanted) + " inputs, not " + std::to_string(call.input_count));
  }
  input_dtypes_.resize(wanted);
  for (size_t i = 0; i < wanted; ++i) {
    const Param& param = signature_.inputs[i];
    const opkit_tensor* given = given_input(i);
    ir_inputs_.emplace_back(static_cast<uint32_t>(inputs_.size()), given == nullptr ? 0 : 1);
    if (given == nullptr) {
      if (param.presence == Presence::Required) fail_here("needs its input \"" + param.name + "\"");
      continue;
    }
    const std::string where = "input \"" + param.name + "\" ";
    if (given->rank > kMaxRank) {
      fail_here(where + "has " + std::to_string(given->rank) + " dimensions; at most 8 are supported");
    }
    gert::Shape shape;
    for (int32_t axis = 0; axis < given->rank; ++axis) shape.AppendDim(given->shape[axis]);
    const bool has_negative =
        std::any_of(given->shape, given->shape + std::max(given->rank, 0), [](int64_t dim) { return dim < 0; });
    const int64_t elements = shape.GetShapeSize();
    if (has_negative || elements < 0 || elements > kMaxElements) {
      fail_here(where + "has the impossible shape " + shape_text(shape));
    }
    if (elements > 0 && given->data == nullptr) fail_here(where + "has elements but no data");
    const DtypeRow* dtype = find_dtype(given->dtype);
    if (dtype == nullptr) fail_here(where + "has " + dtype_name(given->dtype) + ", which opkit does not know");
    gert::Tensor& tensor = inputs_.emplace_back();
    set_shape(tensor, shape);
    tensor.SetDataType(static_cast<ge::DataType>(given->dtype));
    if (param.is_value_dependent) tensor.SetData(given->data, static_cast<size_t>(elements) * dtype->size_bytes);
    input_dtypes_[i] = given->dtype;
  }
  const std::vector<std::optional<int32_t>> unknown_outputs(signature_.outputs.size());
  const size_t columns = column_count(signature_);
  while (column_ < columns && !fits(signature_, column_, input_dtypes_, unknown_outputs)) ++column_;
  if (column_ == columns) {
    fail_here("does not take inputs of type " + given_dtypes(input_dtypes_) +
              "; its OpDef lists: " + describe_columns(signature_));
  }
}

void BoundCall::infer() {
  clear_log();
  infer_dtypes();
  settle_column();
  infer_shapes();
}

void BoundCall::infer_dtypes() {
  if (entry_.infer_data_type != nullptr) {
    gert::InferDataTypeContext context(node_.get());
    const uint32_t status = call_host(entry_.type, "InferDataType", entry_.infer_data_type, &context);
    if (status != ge::GRAPH_SUCCESS) fail_here("its InferDataType function failed" + logged_reason());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].GetDataType() == ge::DT_UNDEFINED) {
        fail_here("its InferDataType function sets no type for output \"" + signature_.outputs[i].name + "\"");
      }
    }
    return;
  }
  // Without the function the OpDef decides, where it leaves no choice.
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Param& param = signature_.outputs[i];
    std::vector<int32_t> choices = dtypes_of(signature_, param, column_);
    for (size_t j = 0; choices.size() > 1 && j < signature_.inputs.size(); ++j) {
      const bool is_followed = (param.follow_kinds & kFollowDtype) != 0 && signature_.inputs[j].name == param.follow;
      if (is_followed && input_dtypes_[j].has_value()) choices = {*input_dtypes_[j]};
    }
    if (choices.size() > 1)
      fail_here("needs an InferDataType function: output \"" + param.name + "\" has several types");
    outputs_[i].SetDataType(static_cast<ge::DataType>(choices.front()));
  }
}

void BoundCall::settle_column() {
  std::vector<std::optional<int32_t>> output_dtypes;
  for (const gert::Tensor& output : outputs_) output_dtypes.emplace_back(output.GetDataType());
  const size_t columns = column_count(signature_);
  while (column_ < columns && !fits(signature_, column_, input_dtypes_, output_dtypes)) ++column_;
  if (column_ == columns) {
    fail_here("its InferDataType function gives " + given_dtypes(input_dtypes_) + " -> " + given_dtypes(output_dtypes) +
              "; its OpDef lists: " + describe_columns(signature_));
  }
  const auto set_format = [&](gert::Tensor& tensor, const Param& param) {
    tensor.MutableDesc().SetOriginFormat(format_of(param, column_));
    tensor.MutableDesc().SetStorageFormat(format_of(param, column_));
  };
  for (size_t i = 0; i < ir_inputs_.size(); ++i) {
    if (ir_inputs_[i].GetInstanceNum() != 0)
      set_format(inputs_[ir_inputs_[i].GetInstanceStart()], signature_.inputs[i]);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) set_format(outputs_[i], signature_.outputs[i]);
}

void BoundCall::infer_shapes() {
  if (entry_.infer_shape != nullptr) {
    gert::InferShapeContext context(node_.get());
    const uint32_t status = call_host(entry_.type, "InferShape", entry_.infer_shape, &context);
    if (status != ge::GRAPH_SUCCESS) fail_here("its InferShape function failed" + logged_reason());
  } else {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Param& param = signature_.outputs[i];
      size_t j = 0;
      while (j < signature_.inputs.size() && signature_.inputs[j].name != param.follow) ++j;
      const bool follows = (param.follow_kinds & kFollowShape) != 0 && ir_inputs_[j].GetInstanceNum() != 0;
      if (!follows) fail_here("has no InferShape function and output \"" + param.name + "\" follows no present input");
      set_shape(outputs_[i], inputs_[ir_inputs_[j].GetInstanceStart()].GetOriginShape());
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const gert::Shape& shape = outputs_[i].GetOriginShape();
    bool has_negative = false;
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) has_negative = has_negative || shape[axis] < 0;
    const int64_t elements = shape.GetShapeSize();
    if (has_negative || elements < 0 || elements > kMaxElements || shape.GetDimNum() > kMaxRank) {
      fail_here("its InferShape function gives output \"" + signature_.outputs[i].name + "\" the impossible shape " +
                shape_text(shape));
    }
    if (find_dtype(outputs_[i].GetDataType()) == nullptr) {
      fail_here("output \"" + signature_.outputs[i].name + "\" has " + dtype_name(outputs_[i].GetDataType()) +
                ", which opkit does not know");
    }
    set_shape(outputs_[i], shape);
  }
}

std::vector<int32_t> BoundCall::variant_dtypes() const {
  std::vector<int32_t> dtypes;
  for (size_t i = 0; i < signature_.inputs.size(); ++i) {
    dtypes.push_back(input_dtypes_[i].value_or(dtypes_of(signature_, signature_.inputs[i], column_).front()));
  }
  for (const gert::Tensor& output : outputs_) dtypes.push_back(output.GetDataType());
  return dtypes;
}

}  // namespace opkit::host
