/// Shapes, strides and coordinates as tuples. Source: Ascend C API, auxiliary data structures, Layout and Coordinate.
#pragma once

#include "opkit/api/std.h"

namespace AscendC {

template <typename... Sizes>
using Shape = Std::tuple<Sizes...>;
template <typename... Steps>
using Stride = Std::tuple<Steps...>;
template <typename... Positions>
using Coord = Std::tuple<Positions...>;

template <typename... Ts>
constexpr Shape<Ts...> MakeShape(const Ts&... t) {
  return {t...};
}
template <typename... Ts>
constexpr Stride<Ts...> MakeStride(const Ts&... t) {
  return {t...};
}
template <typename... Ts>
constexpr Coord<Ts...> MakeCoord(const Ts&... t) {
  return {t...};
}

namespace detail {

template <typename Coordinate, typename Steps, size_t... i>
constexpr auto dot(const Coordinate& coord, const Steps& stride, std::index_sequence<i...>) {
  return (int64_t{0} + ... + (static_cast<int64_t>(std::get<i>(coord)) * static_cast<int64_t>(std::get<i>(stride))));
}

}  // namespace detail

/// The sum of position times step, dimension by dimension.
template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType& coord, const ShapeType&, const StrideType& stride) {
  constexpr size_t kDimensions = std::tuple_size_v<StrideType>;
  static_assert(std::tuple_size_v<CoordType> == kDimensions,
                "Crd2Idx: opkit wants as many positions as the layout has dimensions");
  return detail::dot(coord, stride, std::make_index_sequence<kDimensions>());
}

template <typename ShapeType, typename StrideType>
struct Layout : private Std::tuple<ShapeType, StrideType> {
  using Base = Std::tuple<ShapeType, StrideType>;
  constexpr Layout(const ShapeType& shape = {}, const StrideType& stride = {}) : Base(shape, stride) {}  // NOLINT

  constexpr auto& layout() { return *this; }
  constexpr const auto& layout() const { return *this; }
  constexpr auto& GetShape() { return std::get<0>(static_cast<Base&>(*this)); }
  constexpr const auto& GetShape() const { return std::get<0>(static_cast<const Base&>(*this)); }
  constexpr auto& GetStride() { return std::get<1>(static_cast<Base&>(*this)); }
  constexpr const auto& GetStride() const { return std::get<1>(static_cast<const Base&>(*this)); }
  template <typename CoordType>
  constexpr auto operator()(const CoordType& coord) const {
    return Crd2Idx(coord, GetShape(), GetStride());
  }
};

template <typename ShapeType, typename StrideType>
constexpr Layout<ShapeType, StrideType> MakeLayout(const ShapeType& shape, const StrideType& stride) {
  return Layout<ShapeType, StrideType>(shape, stride);
}
template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType& coord, const Layout<ShapeType, StrideType>& layout) {
  return layout(coord);
}

template <typename T>
struct is_layout : std::false_type {};
template <typename ShapeType, typename StrideType>
struct is_layout<Layout<ShapeType, StrideType>> : std::true_type {};
template <typename T>
constexpr bool is_layout_v = is_layout<T>::value;

}  // namespace AscendC
