// Binding a call to an operator, and inferring its outputs.
#include "bound_call.h"

#include <algorithm>

#include "dtypes.h"
#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "graph/utils/type_utils.h"

namespace opkit::host {
namespace {

constexpr int32_t kMaxRank = sizeof(opkit_shape::dims) / sizeof(int64_t);
constexpr int64_t kMaxElements = int64_t{1} << 48;  // more than any host has, and no size in bytes overflows

bool is_absent(const opkit_tensor& tensor) { return tensor.data == nullptr && tensor.rank < 0; }

ge::Format format_of(const Param& param, size_t column) {
  if (param.formats.empty()) return ge::FORMAT_ND;
  return static_cast<ge::Format>(param.formats[std::min(column, param.formats.size() - 1)]);
}

/// The layout that a call's data_format says its tensors have, by the name of each axis; empty without one.
std::string layout_of(const Operator& entry, const gert::RuntimeAttrs& attrs) {
  for (size_t i = 0; i < entry.attrs.size(); ++i) {
    if (entry.attrs[i].name != "data_format") continue;
    const char* layout = attrs.GetStr(i);
    return layout != nullptr ? layout : "";
  }
  return "";
}

void set_shape(gert::Tensor& tensor, const gert::Shape& shape) {
  tensor.MutableOriginShape() = shape;
  tensor.MutableStorageShape() = shape;
}

/// Whether a shape has dimensions that are not known before the kernel ran: -1, or -2 for the rank.
bool is_open(const gert::Shape& shape) {
  bool has_open = false;
  for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) {
    if (shape[axis] < -2) return false;
    has_open = has_open || shape[axis] < 0;
  }
  return has_open;
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

std::string logged_before_crash() {
  return "; contexts give null for what an operator does not have: an input left out, an index past the last" +
         (logged_errors().empty() ? "" : ". It had logged:\n" + logged_errors());
}

BoundCall::BoundCall(const Operator& entry, const Signature& signature, const opkit_call& call)
    : entry_(entry), signature_(signature), attrs_(entry, call) {
  bind_inputs(call);
  choose_column();
  count_outputs(call);
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

void BoundCall::refuse_here(const std::string& message) const { fail_refused("[" + entry_.type + "] " + message); }

void BoundCall::bind_inputs(const opkit_call& call) {
  const size_t wanted = signature_.inputs.size();
  const bool is_counted = call.input_lengths != nullptr;
  if (is_counted && call.input_length_count != wanted) {
    fail_here("takes " + std::to_string(wanted) + " inputs, not " + std::to_string(call.input_length_count));
  }
  if (!is_counted && call.input_count > wanted) {
    fail_here("takes " + std::to_string(wanted) + " inputs, not " + std::to_string(call.input_count));
  }
  input_dtypes_.resize(wanted);
  size_t next = 0;
  for (size_t i = 0; i < wanted; ++i) {
    const Param& param = signature_.inputs[i];
    const size_t length = is_counted ? call.input_lengths[i] : (next < call.input_count ? 1 : 0);
    if (length > call.input_count - next) {
      fail_here("input \"" + param.name + "\" has " + std::to_string(length) + " tensors, but " +
                std::to_string(call.input_count - next) + " are left");
    }
    if (length > 1 && param.presence != Presence::Dynamic) {
      fail_here("input \"" + param.name + "\" is one tensor, not " + std::to_string(length));
    }
    const size_t start = inputs_.size();
    for (size_t k = 0; k < length; ++k, ++next) {
      const bool is_list = param.presence == Presence::Dynamic && is_counted;
      if (!is_absent(call.inputs[next])) {
        bind_input(i, call.inputs[next]);
      } else if (is_list) {
        fail_here("tensor " + std::to_string(k) + " of input \"" + param.name + "\" is absent");
      }
    }
    ir_inputs_.emplace_back(static_cast<uint32_t>(start), static_cast<uint32_t>(inputs_.size() - start));
    if (param.presence == Presence::Required && inputs_.size() == start) {
      fail_here("needs its input \"" + param.name + "\"");
    }
    if (param.presence == Presence::Dynamic && inputs_.size() == start) {
      fail_here("needs at least one tensor in its input \"" + param.name + "\"");
    }
  }
  if (next < call.input_count) {
    fail_here("has " + std::to_string(call.input_count - next) + " tensors more than its inputs take");
  }
}

void BoundCall::bind_input(size_t ir_index, const opkit_tensor& given) {
  const Param& param = signature_.inputs[ir_index];
  const auto refuse = [&](const std::string& what) { fail_here("input \"" + param.name + "\" " + what); };
  if (given.rank > kMaxRank) {
    refuse("has " + std::to_string(given.rank) + " dimensions; at most 8 are supported");
  }
  gert::Shape shape;
  for (int32_t axis = 0; axis < given.rank; ++axis) shape.AppendDim(given.shape[axis]);
  const bool has_negative =
      std::any_of(given.shape, given.shape + std::max(given.rank, 0), [](int64_t dim) { return dim < 0; });
  const int64_t elements = shape.GetShapeSize();
  if (has_negative || elements < 0 || elements > kMaxElements) {
    refuse("has the impossible shape " + shape_text(shape));
  }
  if (elements > 0 && given.data == nullptr) refuse("has elements but no data");
  if (find_dtype(given.dtype) == nullptr) refuse("has " + dtype_name(given.dtype) + ", which opkit does not know");
  std::optional<int32_t>& dtype_of_param = input_dtypes_[ir_index];
  if (dtype_of_param.has_value() && *dtype_of_param != given.dtype) {
    refuse("mixes " + dtype_name(*dtype_of_param) + " and " + dtype_name(given.dtype));
  }
  dtype_of_param = given.dtype;
  gert::Tensor& tensor = inputs_.emplace_back();
  set_shape(tensor, shape);
  tensor.SetDataType(static_cast<ge::DataType>(given.dtype));
  if (param.is_value_dependent) tensor.SetData(given.data, tensor_bytes(elements, given.dtype));
  input_params_.push_back(ir_index);
  input_data_.push_back(given.data);
}

void BoundCall::choose_column() {
  const std::vector<std::optional<int32_t>> unknown_outputs(signature_.outputs.size());
  const size_t columns = column_count(signature_);
  while (column_ < columns && !fits(signature_, column_, input_dtypes_, unknown_outputs)) ++column_;
  if (column_ == columns) {
    fail_here("does not take inputs of type " + given_dtypes(input_dtypes_) +
              "; its OpDef lists: " + describe_columns(signature_));
  }
}

void BoundCall::count_outputs(const opkit_call& call) {
  const bool is_counted = call.output_lengths != nullptr;
  if (is_counted && call.output_length_count != signature_.outputs.size()) {
    fail_here("has " + std::to_string(signature_.outputs.size()) + " outputs, not " +
              std::to_string(call.output_length_count));
  }
  const auto list = std::find_if(signature_.inputs.begin(), signature_.inputs.end(),
                                 [](const Param& param) { return param.presence == Presence::Dynamic; });
  for (size_t i = 0; i < signature_.outputs.size(); ++i) {
    const Param& param = signature_.outputs[i];
    size_t length = 1;
    if (is_counted) {
      length = call.output_lengths[i];
    } else if (param.presence == Presence::Dynamic && list != signature_.inputs.end()) {
      length = ir_inputs_[static_cast<size_t>(list - signature_.inputs.begin())].GetInstanceNum();
    }
    if ((length == 0 && param.presence == Presence::Required) || (length > 1 && param.presence != Presence::Dynamic)) {
      fail_here("output \"" + param.name + "\" is one tensor, not " + std::to_string(length));
    }
    ir_outputs_.emplace_back(static_cast<uint32_t>(outputs_.size()), static_cast<uint32_t>(length));
    outputs_.resize(outputs_.size() + length);
    output_params_.resize(outputs_.size(), i);
  }
  if (call.outputs == nullptr || call.output_count != outputs_.size()) return;
  for (const opkit_tensor* given = call.outputs; given != call.outputs + call.output_count; ++given) {
    opkit_shape& shape = expected_.emplace_back();
    shape.rank = std::clamp(given->rank, -1, kMaxRank);
    shape.dtype = given->dtype;
    if (shape.rank > 0) std::copy(given->shape, given->shape + shape.rank, shape.dims);
  }
}

bool BoundCall::gives_shape(size_t output) const { return !expected_.empty() && expected_[output].rank >= 0; }

bool BoundCall::gives_dtype(size_t output) const { return !expected_.empty() && expected_[output].dtype >= 0; }

gert::Shape BoundCall::given_shape(size_t output) const {
  gert::Shape shape;
  for (int32_t axis = 0; axis < expected_[output].rank; ++axis) shape.AppendDim(expected_[output].dims[axis]);
  return shape;
}

void BoundCall::infer() {
  watch_crashes();
  clear_log();
  infer_dtypes();
  settle_column("its InferDataType function gives ");
  infer_shapes();
}

void BoundCall::take_given() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!gives_shape(i) || !gives_dtype(i)) return infer();
  }
  watch_crashes();
  clear_log();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].SetDataType(static_cast<ge::DataType>(expected_[i].dtype));
  }
  settle_column("the call is ");
  for (size_t i = 0; i < outputs_.size(); ++i) set_shape(outputs_[i], given_shape(i));
}

void BoundCall::infer_dtypes() {
  if (entry_.infer_data_type != nullptr) {
    // Some functions ask which type the caller's tensor has, and leave it.
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (gives_dtype(i)) outputs_[i].SetDataType(static_cast<ge::DataType>(expected_[i].dtype));
    }
    gert::InferDataTypeContext context(node_.get());
    const uint32_t status = call_host(entry_.type, "InferDataType", entry_.infer_data_type, &context);
    if (status != ge::GRAPH_SUCCESS) fail_here("its InferDataType function failed" + logged_reason());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].GetDataType() == ge::DT_UNDEFINED) {
        fail_here("its InferDataType function sets no type for output \"" + output_param(i).name + "\"");
      }
    }
    take_given_dtypes();
    return;
  }
  // Without the function the OpDef decides, where it leaves no choice.
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Param& param = output_param(i);
    std::vector<int32_t> choices = dtypes_of(signature_, param, column_);
    for (size_t j = 0; choices.size() > 1 && j < signature_.inputs.size(); ++j) {
      const bool is_followed = (param.follow_kinds & kFollowDtype) != 0 && signature_.inputs[j].name == param.follow;
      if (is_followed && input_dtypes_[j].has_value()) choices = {*input_dtypes_[j]};
    }
    if (const gert::Tensor* input = same_named_input(i); choices.size() > 1 && input != nullptr) {
      choices = {static_cast<int32_t>(input->GetDataType())};
    }
    if (choices.size() > 1 && gives_dtype(i)) choices = {expected_[i].dtype};
    if (choices.size() > 1) {
      fail_here("has no InferDataType function, and output \"" + param.name +
                "\" has several types: give its type with the call");
    }
    outputs_[i].SetDataType(static_cast<ge::DataType>(choices.front()));
  }
  // The first combination with these inputs need not be the one that the caller's outputs are of.
  take_given_dtypes();
}

/// As by aclnn, where nothing is inferred and the tensors that are passed choose the kernel.
void BoundCall::take_given_dtypes() {
  std::vector<std::optional<int32_t>> given(signature_.outputs.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    given[output_params_[i]] = gives_dtype(i) ? expected_[i].dtype : static_cast<int32_t>(outputs_[i].GetDataType());
  }
  size_t column = 0;
  const size_t columns = column_count(signature_);
  while (column < columns && !fits(signature_, column, input_dtypes_, given)) ++column;
  if (column == columns) return;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].SetDataType(static_cast<ge::DataType>(*given[output_params_[i]]));
  }
}

void BoundCall::settle_column(const char* who) {
  std::vector<std::optional<int32_t>> output_dtypes(signature_.outputs.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::optional<int32_t>& dtype = output_dtypes[output_params_[i]];
    if (dtype.has_value() && *dtype != outputs_[i].GetDataType()) {
      fail_here(who + ("different types of the tensors of output \"" + output_param(i).name + "\""));
    }
    dtype = outputs_[i].GetDataType();
  }
  const size_t columns = column_count(signature_);
  while (column_ < columns && !fits(signature_, column_, input_dtypes_, output_dtypes)) ++column_;
  if (column_ == columns) {
    fail_here(who + given_dtypes(input_dtypes_) + " -> " + given_dtypes(output_dtypes) +
              "; its OpDef lists: " + describe_columns(signature_));
  }
  // A tensor of any layout has the one that the operator is told; a result has that of the first input.
  const std::string layout = layout_of(entry_, attrs_.attrs());
  const ge::Format said = ge::TypeUtils::SerialStringToFormat(layout);
  const auto has_layout = [&](const gert::Tensor& tensor) {
    return said != ge::FORMAT_RESERVED && tensor.GetOriginShape().GetDimNum() == layout.size();
  };
  const auto set_format = [&](gert::Tensor& tensor, const Param& param, bool takes_layout) {
    const ge::Format listed = format_of(param, column_);
    const ge::Format format = listed == ge::FORMAT_ND && takes_layout ? said : listed;
    tensor.MutableDesc().SetOriginFormat(format);
    tensor.MutableDesc().SetStorageFormat(format);
  };
  for (size_t i = 0; i < ir_inputs_.size(); ++i) {
    for (size_t k = 0; k < ir_inputs_[i].GetInstanceNum(); ++k) {
      gert::Tensor& tensor = inputs_[ir_inputs_[i].GetInstanceStart() + k];
      set_format(tensor, signature_.inputs[i], has_layout(tensor));
    }
  }
  const bool takes_layout = !inputs_.empty() && has_layout(inputs_.front());
  for (size_t i = 0; i < outputs_.size(); ++i) set_format(outputs_[i], output_param(i), takes_layout);
}

std::string BoundCall::advice(size_t output) const {
  if (!output_param(output).is_shape_computed) return "give its shape with the call";
  return "its kernel writes the shape, so give the largest that it may have with the call";
}

void BoundCall::infer_shapes() {
  if (entry_.infer_shape != nullptr) {
    gert::InferShapeContext context(node_.get());
    const size_t asked_before = asked_past_last();
    const uint32_t status = call_host(entry_.type, "InferShape", entry_.infer_shape, &context);
    if (status == ge::GRAPH_SUCCESS) {
      take_shapes_of_idle_inference();
    } else if (asked_past_last() == asked_before) {
      refuse_here("its InferShape function failed" + logged_reason());
    } else {
      // One that looks for what its operator has not says nothing of this call; on the chip the tensors count.
      take_shapes_of_failed_inference();
    }
  } else {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Param& param = output_param(i);
      if (gives_shape(i)) {
        set_shape(outputs_[i], given_shape(i));
        continue;
      }
      if (const gert::Tensor* input = same_named_input(i); input != nullptr) {
        set_shape(outputs_[i], input->GetOriginShape());
        continue;
      }
      size_t j = 0;
      while (j < signature_.inputs.size() && signature_.inputs[j].name != param.follow) ++j;
      const bool follows = (param.follow_kinds & kFollowShape) != 0 && ir_inputs_[j].GetInstanceNum() != 0;
      if (!follows) {
        fail_here("has no InferShape function and output \"" + param.name +
                  "\" follows no present input: " + advice(i));
      }
      const size_t relative = i - ir_outputs_[output_params_[i]].GetInstanceStart();
      const size_t last = ir_inputs_[j].GetInstanceNum() - 1;
      set_shape(outputs_[i], inputs_[ir_inputs_[j].GetInstanceStart() + std::min(relative, last)].GetOriginShape());
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const gert::Shape& shape = outputs_[i].GetOriginShape();
    bool has_negative = false;
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) has_negative = has_negative || shape[axis] < 0;
    if (has_negative && gives_shape(i)) {
      set_shape(outputs_[i], given_shape(i));
      has_negative = false;
    } else if (is_open(shape)) {
      fail_here("its InferShape function leaves the shape of output \"" + output_param(i).name + "\" open, " +
                shape_text(shape) + ": " + advice(i));
    }
    const int64_t elements = shape.GetShapeSize();
    if (has_negative || elements < 0 || elements > kMaxElements || shape.GetDimNum() > kMaxRank) {
      fail_here("its InferShape function gives output \"" + output_param(i).name + "\" the impossible shape " +
                shape_text(shape));
    }
    if (find_dtype(outputs_[i].GetDataType()) == nullptr) {
      fail_here("output \"" + output_param(i).name + "\" has " + dtype_name(outputs_[i].GetDataType()) +
                ", which opkit does not know");
    }
    set_shape(outputs_[i], shape);
  }
}

void BoundCall::take_shapes_of_failed_inference() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!gives_shape(i)) {
      refuse_here("its InferShape function failed and asks for an input or attribute that the OpDef does not list: " +
                  advice(i) + logged_reason());
    }
    set_shape(outputs_[i], given_shape(i));
  }
  clear_log();
}

void BoundCall::take_shapes_of_idle_inference() {
  std::vector<gert::Shape> inferred;
  bool is_doubtful = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    inferred.push_back(outputs_[i].GetOriginShape());
    is_doubtful = is_doubtful || (inferred[i].IsScalar() && gives_shape(i) && expected_[i].rank > 0);
  }
  if (!is_doubtful) return;
  // What it leaves alone is a scalar, too: from another shape on, only what it sets is one.
  const gert::Shape untouched = {gert::Shape::kInvalidDimValue};
  for (gert::Tensor& output : outputs_) set_shape(output, untouched);
  gert::InferShapeContext context(node_.get());
  const uint32_t status = call_host(entry_.type, "InferShape", entry_.infer_shape, &context);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool is_idle = status == ge::GRAPH_SUCCESS && outputs_[i].GetOriginShape() == untouched;
    set_shape(outputs_[i], is_idle && gives_shape(i) ? given_shape(i) : inferred[i]);
  }
}

std::optional<size_t> BoundCall::in_place_output(size_t input) const {
  const size_t ir_input = input_params_[input];
  for (size_t ir_output = 0; ir_output < signature_.outputs.size(); ++ir_output) {
    if (signature_.outputs[ir_output].name != signature_.inputs[ir_input].name) continue;
    const size_t relative = input - ir_inputs_[ir_input].GetInstanceStart();
    if (relative >= ir_outputs_[ir_output].GetInstanceNum()) return std::nullopt;
    const size_t output = ir_outputs_[ir_output].GetInstanceStart() + relative;
    const bool is_same = outputs_[output].GetDataType() == inputs_[input].GetDataType() &&
                         outputs_[output].GetOriginShape().GetShapeSize() == inputs_[input].GetShapeSize();
    return is_same ? std::optional<size_t>(output) : std::nullopt;
  }
  return std::nullopt;
}

/// The present input of the same name as an output.
const gert::Tensor* BoundCall::same_named_input(size_t output) const {
  const size_t ir_output = output_params_[output];
  for (size_t ir_input = 0; ir_input < signature_.inputs.size(); ++ir_input) {
    if (signature_.inputs[ir_input].name != signature_.outputs[ir_output].name) continue;
    const size_t relative = output - ir_outputs_[ir_output].GetInstanceStart();
    if (relative < ir_inputs_[ir_input].GetInstanceNum()) {
      return &inputs_[ir_inputs_[ir_input].GetInstanceStart() + relative];
    }
  }
  return nullptr;
}

std::vector<int32_t> BoundCall::variant_dtypes() const {
  std::vector<int32_t> dtypes;
  dtypes.reserve(signature_.inputs.size() + signature_.outputs.size());
  for (size_t i = 0; i < signature_.inputs.size(); ++i) {
    const std::optional<int32_t>& given = input_dtypes_[i];
    dtypes.push_back(given.has_value() ? *given : dtypes_of(signature_, signature_.inputs[i], column_).front());
  }
  for (size_t i = 0; i < signature_.outputs.size(); ++i) {
    const bool is_present = ir_outputs_[i].GetInstanceNum() != 0;
    dtypes.push_back(is_present ? outputs_[ir_outputs_[i].GetInstanceStart()].GetDataType()
                                : dtypes_of(signature_, signature_.outputs[i], column_).front());
  }
  return dtypes;
}

}  // namespace opkit::host
