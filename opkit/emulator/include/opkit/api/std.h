/// AscendC::Std: the part of the standard library that kernels use under this name. Source: utilities, C++ standard
/// library.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#ifndef OPKIT_BASIC_API_ONLY
#include <cmath>  // kernels call its functions without including it
#else
// All that such texts take from it.
#define NAN (__builtin_nanf(""))
#define INFINITY (__builtin_inff())
#endif

namespace AscendC::Std {

using std::add_const;
using std::add_const_t;
using std::add_cv;
using std::add_cv_t;
using std::add_lvalue_reference;
using std::add_lvalue_reference_t;
using std::add_pointer;
using std::add_pointer_t;
using std::add_rvalue_reference;
using std::add_rvalue_reference_t;
using std::add_volatile;
using std::add_volatile_t;
using std::bool_constant;
using std::conditional;
using std::conditional_t;
using std::decay;
using std::decay_t;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::forward;
using std::get;
using std::index_sequence;
using std::integer_sequence;
using std::integral_constant;
using std::is_array;
using std::is_array_v;
using std::is_base_of;
using std::is_base_of_v;
using std::is_const;
using std::is_const_v;
using std::is_convertible;
using std::is_convertible_v;
using std::is_floating_point;
using std::is_floating_point_v;
using std::is_integral;
using std::is_integral_v;
using std::is_pointer;
using std::is_pointer_v;
using std::is_reference;
using std::is_reference_v;
using std::is_same;
using std::is_same_v;
using std::is_void;
using std::is_void_v;
using std::make_index_sequence;
using std::make_integer_sequence;
using std::make_tuple;
using std::move;
using std::remove_const;
using std::remove_const_t;
using std::remove_cv;
using std::remove_cv_t;
using std::remove_pointer;
using std::remove_pointer_t;
using std::remove_reference;
using std::remove_reference_t;
using std::remove_volatile;
using std::remove_volatile_t;
using std::tie;
using std::true_type;
using std::tuple;
using std::tuple_element;
using std::tuple_element_t;
using std::tuple_size;
using std::tuple_size_v;

template <auto value>
using Int = std::integral_constant<decltype(value), value>;

/// The arguments may differ in type; the result has the type that both convert to.
template <typename T, typename U>
constexpr auto max(const T& src0, const U& src1) -> std::common_type_t<T, U> {
  using Common = std::common_type_t<T, U>;
  return static_cast<Common>(src0) < static_cast<Common>(src1) ? static_cast<Common>(src1) : static_cast<Common>(src0);
}
template <typename T, typename U>
constexpr auto min(const T& src0, const U& src1) -> std::common_type_t<T, U> {
  using Common = std::common_type_t<T, U>;
  return static_cast<Common>(src1) < static_cast<Common>(src0) ? static_cast<Common>(src1) : static_cast<Common>(src0);
}
template <typename T>
inline T abs(const T src) {
  return src < static_cast<T>(0) ? static_cast<T>(-src) : src;
}
/// One rounding, as the scalar unit's.
template <typename T>
inline T sqrt(const T src) {
  return static_cast<T>(__builtin_sqrtf(static_cast<float>(src)));
}

}  // namespace AscendC::Std
