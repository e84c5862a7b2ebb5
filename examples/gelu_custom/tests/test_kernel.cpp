// Runs every kernel of gelu_custom once per data type on the emulated core, and compares it with plain loops in double.
//
//   test_kernel [artifact folder]       build/opkit unless given; ends with 1 when a result is wrong
#include "opkit/extension/kernel_test.h"

namespace {

using namespace opkit::kernel_test;
using opkit::extension::Attributes;

bool test_gelu_custom(opkit_library* library, const std::vector<int32_t>& types) {
  std::vector<Tensor> inputs;
  const std::vector<size_t> lengths = {1};
  inputs.emplace_back(types[0], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(1);
  Attributes attributes;
  std::vector<Tensor> outputs;
  if (!run(library, "GELUCustom", inputs, lengths, attributes, outputs, 1)) return false;
  [[maybe_unused]] const Tensor& in_x = inputs[0];
  [[maybe_unused]] const int64_t columns = kColumns;
  bool passed = true;
  {
    Check check("y", outputs[0]);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        check.element(row * kColumns + column, ((0.5 * in_x.at(row, column)) * (1.0 + (std::tanh(((std::sqrt((2.0 / 3.141592653589793))) * (in_x.at(row, column) + (0.044715 * std::pow(in_x.at(row, column), 3.0)))))))));
      }
    }
    passed = passed && check.passed();
  }
  return passed;
}

bool test_gelu_custom_grad(opkit_library* library, const std::vector<int32_t>& types) {
  std::vector<Tensor> inputs;
  const std::vector<size_t> lengths = {1, 1};
  inputs.emplace_back(types[0], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(1);
  inputs.emplace_back(types[1], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(2);
  Attributes attributes;
  std::vector<Tensor> outputs;
  if (!run(library, "GELUCustomGrad", inputs, lengths, attributes, outputs, 1)) return false;
  [[maybe_unused]] const Tensor& in_grad_y = inputs[0];
  [[maybe_unused]] const Tensor& in_x = inputs[1];
  [[maybe_unused]] const int64_t columns = kColumns;
  bool passed = true;
  {
    Check check("grad_x", outputs[0]);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        check.element(row * kColumns + column, ((in_grad_y.at(row, column) * (1.0 / (1.0 + std::exp(-((1.5957691216057308 * (in_x.at(row, column) + (0.044715 * std::pow(in_x.at(row, column), 3.0))))))))) * (((in_x.at(row, column) * (1.0 / (1.0 + std::exp(-(((-(1.5957691216057308)) * (in_x.at(row, column) + (0.044715 * std::pow(in_x.at(row, column), 3.0))))))))) * ((0.21406444881780076 * std::pow(in_x.at(row, column), 2.0)) + 1.5957691216057308)) + 1.0)));
      }
    }
    passed = passed && check.passed();
  }
  return passed;
}

}  // namespace

int main(int argc, char** argv) {
  return run_cases(argc, argv, {
      {"gelu_custom float16-float16", test_gelu_custom, {DT_FLOAT16}},
      {"gelu_custom_grad float16-float16-float16", test_gelu_custom_grad, {DT_FLOAT16, DT_FLOAT16}},
  });
}
