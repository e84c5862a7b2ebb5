/// What a Matmul object on a vector core has in that core's memories, and its way to the cube core.
#pragma once

#include "opkit/matmul/scratch.h"

namespace opkit::matmul {

/// The tensors as they were set. Each time all of C is computed they are copied to the core's part of the system
/// workspace, where results for UB lie, too.
template <typename A_TYPE, typename B_TYPE, typename BiasT>
class LocalOperands {
 public:
  using AT = typename A_TYPE::T;
  using BT = typename B_TYPE::T;

  AscendC::LocalTensor<AT> a;
  AscendC::LocalTensor<BT> b;
  AscendC::LocalTensor<BiasT> bias;
  AscendC::LocalTensor<uint64_t> quant;
  bool has_a = false;  ///< A lies in a memory of the vector core
  bool has_b = false;
  bool has_bias = false;
  bool has_quant = false;

  bool has_operands(const State& state) const {
    return has_a || has_b || (has_bias && state.has_bias) || (has_quant && state.quant_form == QuantForm::Vector);
  }

  /// Nothing reads any more what has been published.
  void reuse() { used_bytes_ = 0; }

  /// Copies them to where the cube core can read them, and notes that in `state`.
  void publish(State& state, Where where) {
    if (has_a) {
      const Extent extent = extent_of<A_TYPE>(state.single_m, state.single_k, state.is_a_transposed);
      state.a = publish_one(a, extent.size_bytes, where);
      state.a_row = extent.row;
    }
    if (has_b) {
      const Extent extent = extent_of<B_TYPE>(state.single_n, state.single_k, !state.is_b_transposed);
      state.b = publish_one(b, extent.size_bytes, where);
      state.b_row = extent.row;
    }
    if (has_bias && state.has_bias) {
      state.bias = publish_one(bias, state.single_n * static_cast<int64_t>(sizeof(BiasT)), where);
    }
    if (has_quant && state.quant_form == QuantForm::Vector) {
      state.quant = publish_one(quant, state.single_n * static_cast<int64_t>(sizeof(uint64_t)), where);
    }
  }

  /// Where the cube core puts what goes on to UB: at the end, behind operands.
  uint64_t result_address(int64_t result_bytes, Where where) const {
    const uint64_t whole = align(result_bytes);
    if (whole + used_bytes_ > kScratchBytes) {
      illegal_operand("Matmul: operands and result in UB are more than 320 KiB together", where);
    }
    return scratch(where) + kScratchBytes - whole;
  }

 private:
  struct Extent {
    int64_t size_bytes;
    int32_t row;  ///< ND: elements of a row; NZ: rows
  };

  static uint64_t align(int64_t count) { return static_cast<uint64_t>((count + 511) / 512 * 512); }

  /// Of a matrix that lies as [outer, k], or as [k, outer] with `is_turned`.
  template <typename TYPE>
  static Extent extent_of(int32_t outer, int32_t k, bool is_turned) {
    using T = typename TYPE::T;
    if (TYPE::format != CubeFormat::NZ) return {bytes<T>(int64_t{outer} * k), is_turned ? outer : k};
    const int32_t rows = align_up(is_turned ? k : outer, 16);
    return {bytes<T>(int64_t{rows} * align_up(is_turned ? outer : k, block_elements<T>())), rows};
  }

  /// Returns where the bytes are.
  template <typename T>
  uint64_t publish_one(const AscendC::LocalTensor<T>& tensor, int64_t count, Where where) {
    const uint64_t address = scratch(where) + used_bytes_;
    used_bytes_ += align(count);
    if (used_bytes_ > kScratchBytes) {
      illegal_operand("Matmul: operands in UB for one sum are more than 320 KiB together; call GetTensorC in between",
                      where);
    }
    opkit::matmul::publish(tensor, address, count, where);
    return address;
  }

  uint64_t used_bytes_ = 0;
};

}  // namespace opkit::matmul
