// Runs every kernel of rmsnorm once per data type on the emulated core, and compares it with plain loops in double.
//
//   test_kernel [artifact folder]       build/opkit unless given; ends with 1 when a result is wrong
#include "opkit/extension/kernel_test.h"

namespace {

using namespace opkit::kernel_test;
using opkit::extension::Attributes;

bool test_rmsnorm(opkit_library* library, const std::vector<int32_t>& types) {
  std::vector<Tensor> inputs;
  const std::vector<size_t> lengths = {1, 1};
  inputs.emplace_back(types[0], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(1);
  inputs.emplace_back(types[1], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(2);
  Attributes attributes;
  [[maybe_unused]] const double attr_epsilon = 1e-06;
  std::vector<Tensor> outputs;
  if (!run(library, "Rmsnorm", inputs, lengths, attributes, outputs, 1)) return false;
  [[maybe_unused]] const Tensor& in_x = inputs[0];
  [[maybe_unused]] const Tensor& in_gamma = inputs[1];
  [[maybe_unused]] const int64_t columns = kColumns;
  bool passed = true;
  {
    Check check("y", outputs[0]);
    for (int64_t row = 0; row < kRows; ++row) {
      const double mean_0 = reduce_mean(columns, [&](int64_t column) { return std::pow(in_x.at(row, column), 2.0); });
      for (int64_t column = 0; column < kColumns; ++column) {
        check.element(row * kColumns + column, ((in_x.at(row, column) * (1.0 / std::sqrt((mean_0 + attr_epsilon)))) * in_gamma.at(row, column)));
      }
    }
    passed = passed && check.passed();
  }
  return passed;
}

bool test_rmsnorm_grad(opkit_library* library, const std::vector<int32_t>& types) {
  std::vector<Tensor> inputs;
  const std::vector<size_t> lengths = {1, 1, 1};
  inputs.emplace_back(types[0], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(1);
  inputs.emplace_back(types[1], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(2);
  inputs.emplace_back(types[2], std::vector<int64_t>{kRows, kColumns});
  inputs.back().fill(3);
  Attributes attributes;
  [[maybe_unused]] const double attr_epsilon = 1e-06;
  std::vector<Tensor> outputs;
  if (!run(library, "RmsnormGrad", inputs, lengths, attributes, outputs, 2)) return false;
  [[maybe_unused]] const Tensor& in_grad_y = inputs[0];
  [[maybe_unused]] const Tensor& in_x = inputs[1];
  [[maybe_unused]] const Tensor& in_gamma = inputs[2];
  [[maybe_unused]] const int64_t columns = kColumns;
  bool passed = true;
  {
    Check check("grad_x", outputs[0]);
    for (int64_t row = 0; row < kRows; ++row) {
      const double mean_0 = reduce_mean(columns, [&](int64_t column) { return ((in_grad_y.at(row, column) * in_x.at(row, column)) * in_gamma.at(row, column)); });
      const double mean_1 = reduce_mean(columns, [&](int64_t column) { return std::pow(in_x.at(row, column), 2.0); });
      const double mean_2 = reduce_mean(columns, [&](int64_t column) { return std::pow(in_x.at(row, column), 2.0); });
      for (int64_t column = 0; column < kColumns; ++column) {
        check.element(row * kColumns + column, (((in_grad_y.at(row, column) * in_gamma.at(row, column)) - ((mean_0 * in_x.at(row, column)) / std::pow((std::sqrt((mean_1 + attr_epsilon))), 2.0))) / (std::sqrt((mean_2 + attr_epsilon)))));
      }
    }
    passed = passed && check.passed();
  }
  {
    Check check("grad_gamma", outputs[1]);
    for (int64_t row = 0; row < kRows; ++row) {
      const double mean_0 = reduce_mean(columns, [&](int64_t column) { return std::pow(in_x.at(row, column), 2.0); });
      for (int64_t column = 0; column < kColumns; ++column) {
        check.element(row * kColumns + column, ((in_grad_y.at(row, column) * in_x.at(row, column)) / (std::sqrt((mean_0 + attr_epsilon)))));
      }
    }
    passed = passed && check.passed();
  }
  return passed;
}

}  // namespace

int main(int argc, char** argv) {
  return run_cases(argc, argv, {
      {"rmsnorm float16-float16-float16", test_rmsnorm, {DT_FLOAT16, DT_FLOAT16}},
      {"rmsnorm bfloat16-bfloat16-bfloat16", test_rmsnorm, {DT_BF16, DT_BF16}},
      {"rmsnorm float32-float32-float32", test_rmsnorm, {DT_FLOAT, DT_FLOAT}},
      {"rmsnorm_grad float16-float16-float16-float16-float16", test_rmsnorm_grad, {DT_FLOAT16, DT_FLOAT16, DT_FLOAT16}},
      {"rmsnorm_grad bfloat16-bfloat16-bfloat16-bfloat16-bfloat16", test_rmsnorm_grad, {DT_BF16, DT_BF16, DT_BF16}},
      {"rmsnorm_grad float32-float32-float32-float32-float32", test_rmsnorm_grad, {DT_FLOAT, DT_FLOAT, DT_FLOAT}},
  });
}
