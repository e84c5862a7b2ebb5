// Products of matrices, alone and in batches.

#include <ATen/ExpandUtils.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {

namespace {

/// How a matrix of a batch lies: row major, or transposed; false where neither, or where it overlaps itself.
bool layout_of(const at::Tensor& t, bool& is_transposed, int64_t& row) {
  const int64_t r = t.size(-2), c = t.size(-1), sr = t.stride(-2), sc = t.stride(-1);
  if ((sc == 1 || c == 1) && (sr >= std::max<int64_t>(c, 1) || r == 1)) {
    is_transposed = false;
    row = r == 1 ? c : sr;
    return true;
  }
  if ((sr == 1 || r == 1) && (sc >= std::max<int64_t>(r, 1) || c == 1)) {
    is_transposed = true;
    row = c == 1 ? r : sc;
    return true;
  }
  return false;
}

/// out = a b of whole numbers, whose sums the cubes do not have: every product on the scalar unit, then their sums.
const char* multiply_whole(const char* op, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  const int64_t batch = out.size(0), m = out.size(1), n = out.size(2), k = a.size(2);
  if (batch * m * n * k > 1 << 16) return "more than 65536 products of whole numbers";
  if (a.scalar_type() == at::kBool || out.scalar_type() != a.scalar_type()) return kNoType;
  const at::Tensor left = packed(a), turned = packed(b.transpose(1, 2));
  const auto batch_stride = [](const at::Tensor& x) { return x.size(0) == 1 ? 0 : x.stride(0); };
  const at::Tensor rows = view_of(left, {batch, m, n, k}, {batch_stride(left), k, 0, 1});
  const at::Tensor columns = view_of(turned, {batch, m, n, k}, {batch_stride(turned), 0, k, 1});
  // Sums have 64 bits, of which a narrow result keeps the last.
  const at::Tensor products = empty({batch, m, n, k}, at::kLong), sums = empty({batch, m, n}, at::kLong);
  if (const char* reason = run_formula(op, "x * y", products.sizes(), {{"x", rows}, {"y", columns}}, {{"p", products}},
                                       {}, kernels::Fold::None, 0, true)) {
    return reason;
  }
  if (const char* reason = fold_whole(op, kernels::LinePlan::kSum, products, 8, sums)) return reason;
  return run_formula(op, "x", out.sizes(), {{"x", sums}}, {{"y", out}}, {}, kernels::Fold::None, 0, true);
}

}  // namespace

/// out = a b for tensors of 3 dims; the batch of one may be 1.
const char* multiply(const char* op, const at::Tensor& a_given, const at::Tensor& b_given, const at::Tensor& out) {
  if (!on_device(a_given) || !on_device(b_given)) return "a tensor of another device";
  if (a_given.scalar_type() != b_given.scalar_type() || !kind_of(a_given.scalar_type())) return kNoType;
  if (out.numel() == 0) return nullptr;
  if (a_given.numel() == 0) return fill(op, out, 0);
  if (!is_float_kind(a_given)) return multiply_whole(op, a_given, b_given, out);
  bool is_out_transposed = false;
  int64_t out_row = 0;
  if (!layout_of(out, is_out_transposed, out_row)) {
    const at::Tensor made = empty(out.sizes(), out.scalar_type());
    const char* reason = multiply(op, a_given, b_given, made);
    if (reason == nullptr) out.copy_(made);
    return reason;
  }
  if (is_out_transposed) {
    return multiply(op, b_given.transpose(1, 2), a_given.transpose(1, 2), out.transpose(1, 2));
  }
  at::Tensor a = a_given, b = b_given;
  kernels::MatmulPlan plan{};
  bool a_transposed = false, b_transposed = false;
  int64_t a_row = 0, b_row = 0;
  if (!layout_of(a, a_transposed, a_row)) a = a.contiguous(), layout_of(a, a_transposed, a_row);
  if (!layout_of(b, b_transposed, b_row)) b = b.contiguous(), layout_of(b, b_transposed, b_row);
  const int64_t m = a.size(1), k = a.size(2), n = b.size(2);
  if (std::max({m, n, k, a_row, b_row, out_row}) > INT32_MAX / 4) return "a matrix of that size";
  const bool is_wide = out.scalar_type() == at::kFloat;
  plan.kind = a.scalar_type() == at::kHalf ? 0 : a.scalar_type() == at::kBFloat16 ? 1 : 2;
  plan.is_float_result = is_wide && plan.kind != 2;
  if (!is_wide && out.scalar_type() != a.scalar_type()) return kNoType;
  plan.is_a_transposed = a_transposed;
  plan.is_b_transposed = b_transposed;
  plan.m = static_cast<int32_t>(m);
  plan.n = static_cast<int32_t>(n);
  plan.k = static_cast<int32_t>(k);
  plan.a_row = static_cast<int32_t>(a_row);
  plan.b_row = static_cast<int32_t>(b_row);
  plan.c_row = static_cast<int32_t>(out_row);
  plan.batch = out.size(0);
  plan.a_batch = a.size(0) == 1 ? 0 : a.stride(0);
  plan.b_batch = b.size(0) == 1 ? 0 : b.stride(0);
  plan.c_batch = out.stride(0);
  const auto part = [](int64_t size, int64_t limit) { return std::min<int64_t>((size + 15) / 16 * 16, limit); };
  plan.base_m = static_cast<int32_t>(part(m, 128));
  plan.base_n = static_cast<int32_t>(part(n, 128));
  plan.base_k = static_cast<int32_t>(part(k, plan.kind == 2 ? 32 : 64));
  plan.single_m = plan.base_m;
  plan.single_n = plan.base_n;
  // Whole blocks for each core: more than one where there are more blocks than cores.
  const int64_t blocks_m = (m + plan.base_m - 1) / plan.base_m, blocks_n = (n + plan.base_n - 1) / plan.base_n;
  const int64_t items = plan.batch * blocks_m * blocks_n;
  const auto blocks = static_cast<uint32_t>(std::clamp<int64_t>(items, 1, cube_cores()));
  const Range ranges[] = {
      {a.data_ptr(), extent_of(a), true}, {b.data_ptr(), extent_of(b), true}, {out.data_ptr(), extent_of(out), false}};
  launch("matmul_batched", op, {a.data_ptr(), b.data_ptr(), out.data_ptr()}, ranges, &plan, sizeof(plan), blocks,
         out.device().index());
  return nullptr;
}

namespace {

at::Tensor with_batch(const at::Tensor& t) {
  return view_of(t, {1, t.size(0), t.size(1)}, {t.numel(), t.stride(0), t.stride(1)});
}

}  // namespace

/// out = beta * self + alpha * (a b), self broadcast; the product stays in float until the end.
const char* add_product(const char* op, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, double beta,
                        double alpha, const at::Tensor& out) {
  if (!on_device(self) || !kind_of(self.scalar_type())) return kNoType;
  if (!is_float_kind(self)) {
    if (self.scalar_type() != out.scalar_type()) return kNoType;
    if (alpha != std::floor(alpha) || beta != std::floor(beta)) return "a fraction among whole numbers";
    const at::Tensor product = empty(out.sizes(), out.scalar_type());
    if (const char* reason = multiply(op, a, b, product)) return reason;
    return run_formula(op, "p * alpha + s * beta", out.sizes(), {{"p", product}, {"s", packed(self)}}, {{"out", out}},
                       {{"alpha", alpha}, {"beta", beta}}, kernels::Fold::None, 0, true);
  }
  at::Tensor product = empty(out.sizes(), at::kFloat);
  if (const char* reason = multiply(op, a, b, product)) return reason;
  // What self holds does not count then, not even a NaN.
  if (beta == 0) {
    return run_formula(op, "p * alpha", out.sizes(), {{"p", product}}, {{"out", out}}, {{"alpha", alpha}});
  }
  const at::Tensor source = self.dim() > 0 && self.stride(-1) > 1 ? at::Tensor(self.contiguous()) : self;
  return run_formula(op, "p * alpha + s * beta", out.sizes(), {{"p", product}, {"s", source}}, {{"out", out}},
                     {{"alpha", alpha}, {"beta", beta}});
}

void add_products() {
  add_native("mm.out", "matmul_batched", [](const OperatorHandle&, Stack* stack) -> const char* {
    const at::Tensor a = tensor_at(*stack, 3, 0), b = tensor_at(*stack, 3, 1), out = tensor_at(*stack, 3, 2);
    if (out.dim() != 2) return "an out tensor of another shape";
    const c10::DeviceGuard guard(out.device());
    const char* reason = multiply("aten::mm", with_batch(a), with_batch(b), with_batch(out));
    return reason != nullptr ? reason : give(stack, 3, out);
  });
  add_native("bmm.out", "matmul_batched", [](const OperatorHandle&, Stack* stack) -> const char* {
    const at::Tensor a = tensor_at(*stack, 3, 0), b = tensor_at(*stack, 3, 1), out = tensor_at(*stack, 3, 2);
    const c10::DeviceGuard guard(out.device());
    const char* reason = multiply("aten::bmm", a, b, out);
    return reason != nullptr ? reason : give(stack, 3, out);
  });
  // (self, a, b, beta, alpha, out)
  for (const bool is_batched : {false, true}) {
    add_native(is_batched ? "baddbmm.out" : "addmm.out", "matmul_batched",
               [is_batched](const OperatorHandle&, Stack* stack) -> const char* {
                 const at::Tensor self = tensor_at(*stack, 6, 0), a = tensor_at(*stack, 6, 1);
                 const at::Tensor b = tensor_at(*stack, 6, 2), out = tensor_at(*stack, 6, 5);
                 const double beta = value_at(*stack, 6, 3).toScalar().toDouble();
                 const double alpha = value_at(*stack, 6, 4).toScalar().toDouble();
                 if (!on_device(a) || !on_device(b)) return "a tensor of another device";
                 if (!at::is_expandable_to(self.sizes(), out.sizes())) return kSizes;
                 const c10::DeviceGuard guard(out.device());
                 const char* reason = is_batched
                                          ? add_product("aten::baddbmm", self, a, b, beta, alpha, out)
                                          : add_product("aten::addmm", self.dim() == 2 ? with_batch(self) : self,
                                                        with_batch(a), with_batch(b), beta, alpha, with_batch(out));
                 return reason != nullptr ? reason : give(stack, 6, out);
               });
  }
}

}  // namespace opkit::npu
