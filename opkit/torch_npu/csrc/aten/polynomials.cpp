// Orthogonal polynomials of any degree by their recurrences, one degree after the other for all elements.
#include <ATen/ops/max.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

/// p(0) = 1, p(1) = `first`, p(k) by `next` of x, p = p(k - 1), q = p(k - 2) and k. `x`: of the caller's argument.
struct Polynomial {
  const char* op;
  const char* first;
  const char* next;
  bool is_shifted = false;
};

constexpr const char* kChebyshev = "2 * x * p - q";
constexpr Polynomial kPolynomials[] = {
    {"special_chebyshev_polynomial_t", "x + 0", kChebyshev},
    {"special_chebyshev_polynomial_u", "2 * x", kChebyshev},
    {"special_chebyshev_polynomial_v", "2 * x - 1", kChebyshev},
    {"special_chebyshev_polynomial_w", "2 * x + 1", kChebyshev},
    {"special_shifted_chebyshev_polynomial_t", "x + 0", kChebyshev, true},
    {"special_shifted_chebyshev_polynomial_u", "2 * x", kChebyshev, true},
    {"special_shifted_chebyshev_polynomial_v", "2 * x - 1", kChebyshev, true},
    {"special_shifted_chebyshev_polynomial_w", "2 * x + 1", kChebyshev, true},
    {"special_hermite_polynomial_h", "2 * x", "2 * x * p - 2 * (k - 1) * q"},
    {"special_hermite_polynomial_he", "x + 0", "x * p - (k - 1) * q"},
    {"special_laguerre_polynomial_l", "1 - x", "((2 * k - 1 - x) * p - (k - 1) * q) / k"},
    {"special_legendre_polynomial_p", "x + 0", "((2 * k - 1) * x * p - (k - 1) * q) / k"},
};
/// Beyond, PyTorch goes by other formulas.
constexpr double kMostDegrees = 64;

/// special_chebyshev_polynomial_t.out(x, n, out) and the like
const char* polynomial(const Polynomial& of, const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 3, 2);
  const auto seen = [&](size_t i) {
    const at::Tensor given = tensor_at(*stack, 3, i);
    return given.device().is_cpu() && given.dim() == 0 && on_device(out) ? given.to(out.device(), at::kFloat) : given;
  };
  const at::Tensor x = seen(0), degree = seen(1);
  if (!on_device(x) || !on_device(degree) || !on_device(out) || out.scalar_type() != at::kFloat) return kNoType;
  if (!kind_of(x.scalar_type()) || !kind_of(degree.scalar_type())) return kNoType;
  if (out.numel() == 0 || out.dim() > 6) return kSizes;
  const c10::DeviceGuard guard(out.device());
  const at::IntArrayRef sizes = out.sizes();
  // As whole numbers: what is behind a degree's point is cut off.
  const at::Tensor n = empty(degree.sizes(), at::kFloat);
  if (const char* reason =
          run_formula(of.op, "trunc(n)", n.sizes(), {{"n", packed(degree.to(at::kFloat))}}, {{"y", n}}, {})) {
    return reason;
  }
  const double most = at::max(n).item<double>();
  if (!(most <= kMostDegrees)) return "a polynomial of that degree";
  const at::Tensor value = empty(sizes, at::kFloat);
  const at::Tensor given = packed(x.to(at::kFloat).expand(sizes));
  const char* shift = of.is_shifted ? "2 * x - 1" : "x + 0";
  if (const char* reason = run_formula(of.op, shift, sizes, {{"x", given}}, {{"y", value}}, {})) return reason;
  const at::Tensor degrees = packed(n.expand(sizes)), made = at::zeros(sizes, out.options());
  at::Tensor p, q;
  for (int64_t k = 0; k <= static_cast<int64_t>(most); ++k) {
    const at::Tensor next = at::ones(sizes, out.options());
    c10::SmallVector<Named, 4> inputs{{"x", value}};
    if (k > 1) inputs.push_back({"p", p}), inputs.push_back({"q", q});
    const char* reason = k == 0 ? nullptr
                                : run_formula(of.op, k == 1 ? of.first : of.next, sizes, inputs, {{"y", next}},
                                              {{"k", static_cast<double>(k)}});
    if (reason == nullptr) {
      reason = run_formula(of.op, "select(n == k, p, y)", sizes, {{"n", degrees}, {"p", next}, {"y", made}},
                           {{"y", made}}, {{"k", static_cast<double>(k)}});
    }
    if (reason != nullptr) return reason;
    q = p;
    p = next;
  }
  out.copy_(made);
  return give_composed(stack, 3, out);
}

}  // namespace

void add_polynomials() {
  for (const Polynomial& of : kPolynomials) {
    add_native(std::string(of.op) + ".out", "composed",
               [&of](const OperatorHandle& op, Stack* stack) { return polynomial(of, op, stack); });
  }
}

}  // namespace opkit::npu
