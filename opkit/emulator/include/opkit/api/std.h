/// AscendC::Std, what kernels use of the C++ standard library. Source: Ascend C API, utilities, C++ standard library.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

namespace AscendC::Std {

using std::add_const;
using std::add_cv;
using std::add_lvalue_reference;
using std::add_pointer;
using std::add_rvalue_reference;
using std::add_volatile;
using std::conditional;
using std::conditional_t;
using std::decay;
using std::decay_t;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::get;
using std::index_sequence;
using std::integer_sequence;
using std::integral_constant;
using std::is_array;
using std::is_base_of;
using std::is_const;
using std::is_convertible;
using std::is_floating_point;
using std::is_integral;
using std::is_pointer;
using std::is_reference;
using std::is_same;
using std::is_same_v;
using std::is_void;
using std::make_index_sequence;
using std::make_integer_sequence;
using std::make_tuple;
using std::remove_const;
using std::remove_cv;
using std::remove_cv_t;
using std::remove_pointer;
using std::remove_reference;
using std::remove_reference_t;
using std::remove_volatile;
using std::true_type;
using std::tuple;

/// The smaller and the larger of two numbers, as the type of the first.
template <typename T, typename U>
constexpr T min(const T src0, const U src1) {
  return src1 < src0 ? static_cast<T>(src1) : src0;
}
template <typename T, typename U>
constexpr T max(const T src0, const U src1) {
  return src0 < src1 ? static_cast<T>(src1) : src0;
}

}  // namespace AscendC::Std
