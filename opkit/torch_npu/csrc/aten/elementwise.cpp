// Element-wise operators: rows of elementwise.inc, each with a formula over the operator's own arguments.
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/all.h>
#include <ATen/ops/ne.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/device.h"
#include "runtime/fallback.h"
#include "runtime/forms.h"
#include "runtime/launch.h"
#include "aten/natives.h"
#include "runtime/outputs.h"
#include "runtime/registry.h"

namespace opkit::npu {
namespace {

enum class Typing { promote, to_float, to_bool, exact, bits, select, masked, whole_only };

/// What is known of a row once its operator's schema is.
struct Bound {
  std::vector<size_t> inputs;   ///< positions of tensors in the schema
  std::vector<size_t> numbers;  ///< positions of numbers
  int output = -1;              ///< position of the tensor that is written; -1: a new one
  int text = -1;                ///< position of the text argument that picks the formula
  int fixed = -1;               ///< position of the number that picks it
  Program program;
  Program with_bool;  ///< with "!= 0" behind it, for results of yes or no
};

/// A number in the type that it is compared in: half types round it first, others are left to the kernel.
double rounded_to(at::ScalarType type, double value) {
  if (type == at::kHalf) return static_cast<float>(c10::Half(static_cast<float>(value)));
  if (type == at::kBFloat16) return static_cast<float>(c10::BFloat16(static_cast<float>(value)));
  return value;
}

/// What PyTorch wraps or refuses, as the operator has it; the CPU does.
constexpr const char* kNotHeld = "a number that the whole numbers do not have";

/// The formula would compute it; the CPU says in PyTorch's words what is wrong.
constexpr const char* kRefused = "types that PyTorch refuses";

/// Whether whole numbers of a type hold a number.
bool holds(at::ScalarType type, double value) {
  if (value != std::floor(value)) return false;
  if (type == at::kBool) return true;
  const int bits = 8 * static_cast<int>(c10::elementSize(type)) - (type == at::kByte ? 0 : 1);
  return value < std::ldexp(1.0, bits) && value >= (type == at::kByte ? 0 : -std::ldexp(1.0, bits));
}

/// The value of a 0-dim tensor of the host, for as long as a launch takes.
struct Constant {
  float real = 0;
  int64_t whole = 0;

  double value(bool is_whole) const { return is_whole ? static_cast<double>(whole) : real; }
  const char* take(const at::TensorBase& tensor, bool is_whole, at::ScalarType compared, Argument& argument) {
    const at::Scalar value = at::native::_local_scalar_dense_cpu(at::Tensor(tensor));
    if (is_whole && !value.isIntegral(true)) return "floats among whole numbers";
    if (is_whole) {
      whole = value.toLong();
    } else {
      real = static_cast<float>(rounded_to(compared, value.toDouble()));
    }
    argument.kind = is_whole ? kernels::Kind::S64 : kernels::Kind::F32;
    argument.data = is_whole ? reinterpret_cast<char*>(&whole) : reinterpret_cast<char*>(&real);
    argument.extent_bytes = is_whole ? sizeof(whole) : sizeof(real);
    return nullptr;
  }
};

class Elementwise {
 public:
  Elementwise(std::string op, const char* text_name, const char* text_value, const char* formula, Typing typing)
      : op_(std::move(op)), text_name_(text_name), text_value_(text_value), formula_(formula), typing_(typing) {}

  const char* serve(const c10::OperatorHandle& op, c10::Stack* stack) {
    std::call_once(bound_once_, [&] { bind(op.schema()); });
    const size_t count = op.schema().arguments().size();
    const c10::IValue* arguments = &(*stack)[stack->size() - count];
    if (!applies(arguments)) return "another exponent than this one";
    if (bound_.text >= 0 &&
        (!arguments[bound_.text].isString() || arguments[bound_.text].toStringRef() != text_value_)) {
      return "another mode than this one";
    }

    at::Tensor out = bound_.output >= 0 ? arguments[bound_.output].toTensor() : at::Tensor();
    c10::SmallVector<at::Tensor, 4> tensors;
    for (const size_t i : bound_.inputs) {
      if (!arguments[i].isTensor()) return "a list where the kernel takes a tensor";
      tensors.push_back(arguments[i].toTensor());
      if (!tensors.back().defined()) return "a tensor is missing";
    }
    const char* reason = run(tensors, out, arguments);
    if (reason != nullptr) return reason;
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(out));
    return nullptr;
  }

 private:
  bool applies(const c10::IValue* arguments) const {
    if (bound_.fixed < 0) return true;
    const c10::IValue& value = arguments[bound_.fixed];
    return (value.isInt() || value.isDouble()) && value.toScalar().toDouble() == std::stod(text_value_);
  }

  void bind(const c10::FunctionSchema& schema) {
    std::vector<std::string> inputs;
    std::vector<std::string> numbers;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      const auto kind = argument.type()->kind();
      const bool is_tensor = kind == c10::TypeKind::TensorType;
      if (argument.name() == text_name_) {
        (kind == c10::TypeKind::NumberType ? bound_.fixed : bound_.text) = static_cast<int>(i);
      }
      if (is_written) bound_.output = static_cast<int>(i);
      if (is_tensor && !argument.is_out()) {
        inputs.push_back(argument.name());
        bound_.inputs.push_back(i);
      } else if (kind == c10::TypeKind::NumberType || kind == c10::TypeKind::FloatType ||
                 kind == c10::TypeKind::IntType || kind == c10::TypeKind::BoolType) {
        numbers.push_back(argument.name());
        bound_.numbers.push_back(i);
      }
    }
    bound_.program = compile(formula_, inputs, numbers, {"out"});
    const std::string text = formula_;
    const size_t last = text.rfind(';');
    const std::string head = last == std::string::npos ? "" : text.substr(0, last + 1);
    const std::string tail = last == std::string::npos ? text : text.substr(last + 1);
    bound_.with_bool = compile(head + "(" + tail + ") != 0", inputs, numbers, {"out"});
  }

  at::TensorIterator iterate(c10::ArrayRef<at::Tensor> tensors, at::Tensor& out) const {
    at::TensorIteratorConfig config;
    config.add_output(out);
    for (const at::Tensor& tensor : tensors) config.add_const_input(tensor);
    config.allow_cpu_scalars(true).set_check_mem_overlap(true);
    if (typing_ == Typing::masked) {
      config.check_all_same_dtype(false).resize_outputs(false);
      if (!out.defined()) config.declare_static_dtype(tensors.front().scalar_type());
    } else if (typing_ == Typing::select) {
      config.check_all_same_dtype(false);
      const at::ScalarType type =
          tensors.back().dim() > 0 || tensors.size() < 3
              ? c10::promoteTypes(tensors[tensors.size() - 2].scalar_type(), tensors.back().scalar_type())
              : tensors[tensors.size() - 2].scalar_type();
      if (!out.defined()) config.declare_static_dtype(type);
    } else {
      config.promote_inputs_to_common_dtype(true);
      config.promote_integer_inputs_to_float(typing_ == Typing::to_float);
      if (typing_ != Typing::to_bool) {
        config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
      } else if (!out.defined()) {
        config.check_all_same_dtype(false).promote_inputs_to_common_dtype(false);
        config.declare_static_dtype(at::kBool);
      } else {
        config.cast_common_dtype_to_outputs(true);
      }
    }
    return config.build();
  }

  const char* run(c10::SmallVector<at::Tensor, 4>& tensors, at::Tensor& out, const c10::IValue* arguments) {
    if (typing_ == Typing::masked) {
      check_masked(tensors);
      // PyTorch only warns of it there.
      if (out.defined() && at::has_internal_overlap(out) == at::MemOverlap::Yes) return "elements that share memory";
    }
    for (at::Tensor& tensor : tensors) {
      const bool is_number = tensor.device().is_cpu() && tensor.dim() == 0 && !tensor.is_complex();
      if (!is_number && !kind_of(tensor.scalar_type())) return "the chip has no such data type";
      if (tensor.is_conj() || tensor.is_neg()) return "a lazily negated tensor";
    }
    if (out.defined() && !kind_of(out.scalar_type())) return "the chip has no such data type";
    c10::DeviceIndex device = -1;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.device().type() != kDevice) {
        if (tensor.dim() != 0 || !tensor.device().is_cpu()) return "a tensor of another device";
      } else if (device >= 0 && tensor.device().index() != device) {
        return "tensors of several devices";
      } else {
        device = tensor.device().index();
      }
    }
    if (device < 0 || (out.defined() && out.device().index() != device)) return "tensors of several devices";
    const c10::DeviceGuard guard(c10::Device(kDevice, device));
    at::Tensor made = out;
    at::TensorIterator iter = iterate(tensors, made);
    if (!made.defined()) made = iter.output(0);
    if (iter.numel() == 0) {
      out = iter.output(0);
      return nullptr;
    }
    const bool is_narrower = out.defined() && computes_in_another(iter, arguments);
    const char* reason = is_narrower ? kRows : launch(iter, arguments, device);
    if (reason == kRows) {
      // Rows whose elements lie apart are put side by side first.
      for (at::Tensor& tensor : tensors) {
        if (tensor.device().type() == kDevice && !tensor.is_contiguous()) tensor = tensor.contiguous();
      }
      at::Tensor result = out.defined() && (is_narrower || !out.is_contiguous()) ? at::Tensor() : out;
      at::TensorIterator again = iterate(tensors, result);
      reason = launch(again, arguments, device);
      if (reason != nullptr) return reason == kRows ? "elements that do not lie side by side" : reason;
      if (out.defined() && !out.is_same(again.output(0))) {
        out.copy_(again.output(0));
      } else if (out.defined() || made.is_contiguous()) {
        out = again.output(0);
      } else {
        out = made.copy_(again.output(0));  // as PyTorch has the elements lie
      }
      return nullptr;
    }
    if (reason == nullptr) out = iter.output(0);
    return reason;
  }

  /// Whether a given tensor takes what has been rounded, or has wrapped, in a narrower type before: a kernel computes
  /// in float32 or in 64 bits, and would write that.
  bool computes_in_another(at::TensorIterator& iter, const c10::IValue* arguments) const {
    if (typing_ == Typing::masked || typing_ == Typing::select || typing_ == Typing::to_bool) return false;
    const at::ScalarType common = iter.common_dtype();
    // Whole numbers with a number that is none are floats, which the iterator does not see.
    const bool has_real = std::any_of(bound_.numbers.begin(), bound_.numbers.end(),
                                      [&](size_t position) { return arguments[position].isDouble(); });
    if (has_real && !at::isFloatingType(common)) return false;
    return common != iter.output(0).scalar_type() && common != at::kFloat && common != at::kLong &&
           common != at::kDouble;
  }

  /// What the iterator does not know of: the mask's type, and that one number goes where the mask says.
  static void check_masked(c10::ArrayRef<at::Tensor> tensors) {
    TORCH_CHECK(tensors[1].scalar_type() == at::kBool,
                "masked_fill_ only supports boolean masks, but got mask with dtype ", tensors[1].scalar_type());
    TORCH_CHECK(tensors.size() < 3 || tensors[2].dim() == 0,
                "masked_fill only supports a 0-dimensional value tensor, but got tensor with ", tensors.back().dim(),
                " dimension(s).");
  }

  static constexpr const char* kRows = "rows";

  const char* launch(at::TensorIterator& iter, const c10::IValue* arguments, c10::DeviceIndex device) {
    MapCall call;
    call.name = op_.c_str();
    for (int d = 0; d < iter.ndim(); ++d) call.shape.push_back(iter.shape()[d]);
    if (call.shape.size() > kernels::kOuter + 1) return "more dims than the kernel takes";
    const at::TensorBase& out = iter.output(0);
    const at::ScalarType common = typing_ == Typing::masked                                 ? out.scalar_type()
                                  : typing_ == Typing::select || typing_ == Typing::to_bool ? common_type(iter)
                                                                                            : iter.common_dtype();
    bool has_float = at::isFloatingType(common);
    // As in PyTorch, whole numbers are compared with a number that is none as floats.
    for (const size_t position : bound_.numbers) {
      has_float |= typing_ == Typing::to_bool && arguments[position].isDouble();
    }
    bool is_small = true;  // whether floats hold all values
    for (int i = 0; i < iter.ninputs(); ++i) {
      const at::ScalarType type = iter.input(i).scalar_type();
      is_small &= type == at::kBool || type == at::kByte || type == at::kChar || type == at::kShort;
    }
    if (common != at::kDouble && !kind_of(common)) return "the chip has no such data type";
    const bool is_bool_result = out.scalar_type() == at::kBool;
    if (typing_ == Typing::whole_only && has_float) return "remainders of floats";
    if (typing_ == Typing::bits && has_float) return kRefused;
    if (typing_ == Typing::bits && common != at::kBool && iter.numel() > kWholeLimit) return kTooManyWhole;
    call.is_whole = !has_float && !(is_small && (typing_ == Typing::to_bool || typing_ == Typing::exact ||
                                                 typing_ == Typing::select || typing_ == Typing::masked ||
                                                 (typing_ == Typing::bits && common == at::kBool)));
    if (call.is_whole) {
      if (iter.numel() > kWholeLimit) return kTooManyWhole;
      if (!bound_.program.is_whole_able) return "this function of whole numbers";
      if (at::isFloatingType(out.scalar_type())) return "whole numbers into floats";
    }
    const at::ScalarType compared = typing_ == Typing::to_bool ? tensors_type(iter) : at::ScalarType::Undefined;
    Constant constants[kernels::kMaxOperands];
    if (iter.ntensors() > static_cast<int>(kernels::kMaxOperands)) return "more operands than the kernel takes";
    const Program& program = is_bool_result && typing_ == Typing::promote ? bound_.with_bool : bound_.program;
    for (int i = 0; i < iter.ntensors(); ++i) {
      Argument argument;
      const at::TensorBase& tensor = iter.tensor(i);
      const at::ScalarType type = tensor.scalar_type();
      const auto item = static_cast<int64_t>(tensor.element_size());
      if (tensor.device().is_cpu()) {
        // A number: it goes along as the kernel computes, whatever type Python gave it.
        for (int d = 0; d < iter.ndim(); ++d) argument.strides.push_back(0);
        const char* reason = constants[i].take(tensor, call.is_whole, compared, argument);
        if (reason == nullptr && !has_float && !holds(common, constants[i].value(call.is_whole))) reason = kNotHeld;
        if (reason != nullptr) return reason;
        call.inputs.push_back(std::move(argument));
        continue;
      }
      argument.kind = *kind_of(type);
      argument.data = static_cast<char*>(iter.data_ptr(i));
      uint64_t last = 0;
      for (int d = 0; d < iter.ndim(); ++d) {
        const int64_t stride = iter.strides(i)[d] / item;
        argument.strides.push_back(stride);
        last += static_cast<uint64_t>(stride) * (iter.shape()[d] - 1);
        if (d == 0 && iter.shape()[0] > 1 && stride != 1 && !(stride == 0 && i >= iter.noutputs())) return kRows;
      }
      argument.extent_bytes = (last + 1) * item;
      if (i >= iter.noutputs() && call.is_whole && at::isFloatingType(type)) return "floats among whole numbers";
      if (i < iter.noutputs()) {
        call.outputs.push_back(std::move(argument));
      } else {
        call.inputs.push_back(std::move(argument));
      }
    }
    for (const size_t position : bound_.numbers) {
      const c10::IValue& value = arguments[position];
      Number number;
      if (value.isInt()) {
        number.whole = value.toInt();
        number.real = static_cast<double>(number.whole);
        if (!has_float && !holds(common, number.real)) return kNotHeld;
      } else if (value.isBool()) {
        number.whole = value.toBool();
        number.real = static_cast<double>(number.whole);
      } else if (value.isDouble()) {
        number.real = rounded_to(compared, value.toDouble());
        if ((call.is_whole || (typing_ == Typing::masked && !has_float)) && !holds(common, number.real)) {
          return kNotHeld;
        }
        number.whole = call.is_whole ? static_cast<int64_t>(number.real) : 0;
      } else {
        return "a number that is none";
      }
      call.numbers.push_back(number);
    }
    if (typing_ == Typing::whole_only) {
      const at::TensorBase& divisor = iter.input(iter.ninputs() - 1);
      if (divisor.numel() > 4096) return "remainders of so many numbers";
      if (has_zero(divisor)) return "a division by zero";
    }
    return run_program(program, call, device);
  }

  /// The CPU says it as an error; the kernel would go on.
  static bool has_zero(const at::TensorBase& divisor) {
    const at::Tensor given(divisor);
    const at::Tensor seen = divisor.device().is_cpu() ? given : as_cpu(given);
    return !at::all(at::ne(seen, 0)).item<bool>();
  }

  /// The common type of the inputs that are no numbers.
  static at::ScalarType tensors_type(at::TensorIterator& iter) {
    at::ScalarType type = at::ScalarType::Undefined;
    for (int i = 0; i < iter.ninputs(); ++i) {
      if (iter.input(i).device().is_cpu()) continue;
      const at::ScalarType own = iter.input(i).scalar_type();
      type = type == at::ScalarType::Undefined ? own : c10::promoteTypes(type, own);
    }
    return type;
  }

  at::ScalarType common_type(at::TensorIterator& iter) const {
    at::ScalarType type = iter.input(iter.ninputs() - 1).scalar_type();
    for (int i = typing_ == Typing::select ? 1 : 0; i < iter.ninputs(); ++i) {
      type = c10::promoteTypes(type, iter.input(i).scalar_type());
    }
    return type;
  }

  std::string op_;
  const char* text_name_;
  const char* text_value_;
  const char* formula_;
  Typing typing_;
  std::once_flag bound_once_;
  Bound bound_;
};

struct FormulaRow {
  const char* op;
  const char* text_name;
  const char* text_value;
  Typing typing;
};
constexpr FormulaRow kFormulaRows[] = {
#define ROW(op, typing) {op, "", "", Typing::typing},
#define ROW_IF(op, name, value, typing) {op, name, value, Typing::typing},
#include "aten/elementwise.inc"
#undef ROW
#undef ROW_IF
};
/// One for each row, from the compiler's operators (opkit/torch_npu/formulas.py).
constexpr const char* kFormulas[] = {
#include "formulas.inc"
};
static_assert(std::size(kFormulas) == std::size(kFormulaRows));

bool has_row(const std::string& op) {
  return std::any_of(std::begin(kFormulaRows), std::end(kFormulaRows),
                     [&](const FormulaRow& row) { return op == row.op; });
}

/// Rows from `begin` to `end` serve an operator, the first that can.
void add_rows(const std::string& op, size_t begin, size_t end) {
  std::vector<std::shared_ptr<Elementwise>> rows;
  for (size_t i = begin; i < end; ++i) {
    const FormulaRow& row = kFormulaRows[i];
    rows.push_back(std::make_shared<Elementwise>(op, row.text_name, row.text_value, kFormulas[i], row.typing));
  }
  const auto types_taken = std::make_shared<TypesTaken>(kFormulaRows[begin].typing == Typing::to_bool);
  add_native(op, "vector_program", [rows, types_taken](const c10::OperatorHandle& handle, c10::Stack* stack) {
    if (!(*types_taken)(handle, *stack)) return kRefused;
    const char* reason = nullptr;
    for (const auto& row : rows) {
      reason = row->serve(handle, stack);
      if (reason == nullptr) return reason;
    }
    return reason;
  });
}

}  // namespace

const char* elementwise_formula(std::string_view op) {
  for (size_t i = 0; i < std::size(kFormulaRows); ++i) {
    if (op == kFormulaRows[i].op) return kFormulas[i];
  }
  TORCH_INTERNAL_ASSERT(false, op, " has no formula");
}

void add_elementwise() {
  for (size_t begin = 0, end = 0; begin < std::size(kFormulaRows); begin = end) {
    // Rows of one operator for several values of a text stand together.
    const std::string op = kFormulaRows[begin].op;
    while (end < std::size(kFormulaRows) && kFormulaRows[end].op == op) ++end;
    add_rows(op, begin, end);
    // The formula writes a given tensor as well.
    for (const std::string& form : written_forms(op)) {
      if (!has_row(form)) add_rows(form, begin, end);
    }
  }
}

}  // namespace opkit::npu
