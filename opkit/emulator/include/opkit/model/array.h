/// Arrays that go into a model and come out of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace opkit::model {

using Shape = std::vector<int64_t>;

inline uint64_t count_of(const Shape& shape) {
  uint64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) throw std::invalid_argument("a size is below zero");
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count)) {
      throw std::invalid_argument("a shape has more elements than can be counted");
    }
  }
  return count;
}

/// Bytes of an element; 0 for a data type that models do not have.
inline size_t size_of(const std::string& dtype) {
  static const std::map<std::string, size_t> sizes{{"float32", 4}, {"float16", 2}, {"bfloat16", 2},
                                                   {"int8", 1},    {"uint8", 1},   {"int16", 2},
                                                   {"int32", 4},   {"int64", 8},   {"bool", 1}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

/// A dense array of its own memory.
struct Array {
  Shape shape;
  std::string dtype;  ///< such as float32
  std::vector<char> bytes;

  template <typename T>
  static Array of(Shape shape, const std::vector<T>& values) {
    Array made{std::move(shape), name_of<T>(), std::vector<char>(values.size() * sizeof(T))};
    if (count_of(made.shape) != values.size()) {
      throw std::invalid_argument("an array of " + std::to_string(count_of(made.shape)) + " elements is given " +
                                  std::to_string(values.size()));
    }
    if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
    return made;
  }

  /// The elements; T is that of the data type, or uint16_t for the bits of float16 and bfloat16.
  template <typename T>
  const T* data() const {
    if (sizeof(T) != size_of(dtype)) throw std::invalid_argument("the elements are " + dtype);
    return reinterpret_cast<const T*>(bytes.data());
  }

  /// The elements of an array of fractions as float.
  std::vector<float> floats() const {
    std::vector<float> found(count_of(shape));
    for (size_t i = 0; i < found.size(); ++i) {
      if (dtype == "float32") {
        found[i] = data<float>()[i];
      } else if (dtype == "float16") {
        found[i] = from_half(data<uint16_t>()[i]);
      } else if (dtype == "bfloat16") {
        found[i] = from_bits(static_cast<uint32_t>(data<uint16_t>()[i]) << 16);
      } else {
        throw std::invalid_argument("the elements are " + dtype + ", no fractions");
      }
    }
    return found;
  }

  /// The same fractions in another data type, rounded to the nearest, ties to even.
  Array as(const std::string& wanted) const {
    if (wanted == dtype) return *this;
    const std::vector<float> values = floats();
    if (wanted == "float32") return of(shape, values);
    if (wanted != "float16" && wanted != "bfloat16") throw std::invalid_argument("fractions are given for " + wanted);
    std::vector<uint16_t> rounded(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      rounded[i] = wanted == "float16" ? to_half(values[i]) : to_bfloat16(values[i]);
    }
    Array made = of(shape, rounded);
    made.dtype = wanted;
    return made;
  }

 private:
  template <typename T>
  static std::string name_of() {
    if constexpr (std::is_same_v<T, float>)
      return "float32";
    else if constexpr (std::is_same_v<T, int8_t>)
      return "int8";
    else if constexpr (std::is_same_v<T, uint8_t>)
      return "uint8";
    else if constexpr (std::is_same_v<T, int16_t>)
      return "int16";
    else if constexpr (std::is_same_v<T, uint16_t>)
      return "float16";
    else if constexpr (std::is_same_v<T, int32_t>)
      return "int32";
    else {
      static_assert(std::is_same_v<T, int64_t>, "models have no such data type");
      return "int64";
    }
  }

  static float from_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static float from_half(uint16_t half) {
    const int exponent = (half >> 10) & 31, fraction = half & 1023;
    const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  static uint16_t to_half(float value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | 0x7E00;
    const float size = std::fabs(value);
    if (size >= 65520.0f) return sign | 0x7C00;
    int exponent = 0;
    std::frexp(size, &exponent);
    // Elements lie 2^(exponent - 11) apart, and never closer than 2^-24.
    const int step = exponent - 11 > -24 ? exponent - 11 : -24;
    const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -step)));
    // One step more than 2047 carries into the exponent by itself.
    return static_cast<uint16_t>(sign | (static_cast<uint32_t>(step + 24) * 1024 + steps));
  }
  static uint16_t to_bfloat16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
};

}  // namespace opkit::model
