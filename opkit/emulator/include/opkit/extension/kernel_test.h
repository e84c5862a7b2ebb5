/// For the C++ unit test of a project's kernels: tensors of every data type, the ecosystem standard element by element,
/// and calls through the operator library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "opkit/extension/call.h"
#include "opkit/op_call.h"

namespace opkit::kernel_test {

// A row that is no multiple of 32 bytes in any data type.
constexpr int64_t kRows = 3;
constexpr int64_t kColumns = 37;

/// ge::DataType numbers.
enum Type : int32_t {
  DT_FLOAT16 = 1,
  DT_FLOAT = 0,
  DT_BF16 = 27,
  DT_INT8 = 2,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_INT32 = 3,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_BOOL = 12,
  DT_DOUBLE = 11,
};

inline double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

inline double bfloat16_to_double(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <typename T>
double read_as(const uint8_t* bytes) {
  T value = {};
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

inline size_t size_bytes(int32_t type) {
  switch (type) {
    case DT_FLOAT16: return 2;
    case DT_FLOAT: return 4;
    case DT_BF16: return 2;
    case DT_INT8: return 1;
    case DT_UINT8: return 1;
    case DT_INT16: return 2;
    case DT_UINT16: return 2;
    case DT_INT32: return 4;
    case DT_UINT32: return 4;
    case DT_INT64: return 8;
    case DT_UINT64: return 8;
    case DT_BOOL: return 1;
    case DT_DOUBLE: return 8;
  }
  return 0;
}

inline double read(int32_t type, const uint8_t* bytes) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, std::min<size_t>(2, size_bytes(type)));
  switch (type) {
    case DT_FLOAT16: return half_to_double(bits);
    case DT_BF16: return bfloat16_to_double(bits);
    case DT_FLOAT: return read_as<float>(bytes);
    case DT_INT8: return read_as<int8_t>(bytes);
    case DT_UINT8: return read_as<uint8_t>(bytes);
    case DT_INT16: return read_as<int16_t>(bytes);
    case DT_UINT16: return read_as<uint16_t>(bytes);
    case DT_INT32: return read_as<int32_t>(bytes);
    case DT_UINT32: return read_as<uint32_t>(bytes);
    case DT_INT64: return read_as<int64_t>(bytes);
    case DT_UINT64: return read_as<uint64_t>(bytes);
    case DT_BOOL: return read_as<bool>(bytes);
    case DT_DOUBLE: return read_as<double>(bytes);
  }
  return NAN;
}

/// A tensor, its bytes random but the same on every run.
struct Tensor {
  Tensor(int32_t type, std::vector<int64_t> dims) : type(type), shape(std::move(dims)) {
    for (int64_t dim : shape) count *= dim;
    bytes.resize(std::max<size_t>(1, count * size_bytes(type)));
  }

  void fill(uint32_t seed) {
    for (int64_t index = 0; index < count; ++index) {
      seed = seed * 1664525u + 1013904223u;
      const int32_t step = static_cast<int32_t>(seed >> 24) - 128;  // -128 .. 127
      uint8_t* place = bytes.data() + index * size_bytes(type);
      switch (type) {
        // Sixty-fourths from -2 to 2 have a short fraction: every floating type holds them exactly.
        case DT_FLOAT16: put(place, half_bits(step)); break;
        case DT_BF16: put(place, bfloat16_bits(step)); break;
        case DT_FLOAT: put(place, static_cast<float>(step) / 64); break;
        case DT_DOUBLE: put(place, static_cast<double>(step) / 64); break;
        case DT_BOOL: put(place, static_cast<uint8_t>(step & 1)); break;
        case DT_INT8: put(place, static_cast<int8_t>(step / 16)); break;
        case DT_UINT8: put(place, static_cast<uint8_t>((step + 128) / 16)); break;
        case DT_INT16: put(place, static_cast<int16_t>(step)); break;
        case DT_UINT16: put(place, static_cast<uint16_t>(step + 128)); break;
        case DT_INT32: put(place, static_cast<int32_t>(step)); break;
        case DT_UINT32: put(place, static_cast<uint32_t>(step + 128)); break;
        case DT_INT64: put(place, static_cast<int64_t>(step)); break;
        case DT_UINT64: put(place, static_cast<uint64_t>(step + 128)); break;
      }
    }
  }

  double at(int64_t i) const { return read(type, bytes.data() + i * size_bytes(type)); }
  double at(int64_t i, int64_t j) const { return at(i * kColumns + j); }
  opkit_tensor view() { return {bytes.data(), shape.data(), static_cast<int32_t>(shape.size()), type}; }

  int32_t type;
  std::vector<int64_t> shape;
  int64_t count = 1;
  std::vector<uint8_t> bytes;

 private:
  template <typename T>
  static void put(uint8_t* place, T value) {
    std::memcpy(place, &value, sizeof value);
  }

  static uint16_t bfloat16_bits(int32_t sixty_fourths) {
    const float value = static_cast<float>(sixty_fourths) / 64;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>(bits >> 16);
  }

  static uint16_t half_bits(int32_t sixty_fourths) {
    if (sixty_fourths == 0) return 0;
    int exponent = 0;
    const double fraction = std::frexp(std::abs(sixty_fourths) / 64.0, &exponent);  // 0.5 <= fraction < 1
    const int mantissa = static_cast<int>((2 * fraction - 1) * 1024);
    return static_cast<uint16_t>((sixty_fourths < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | mantissa);
  }
};

/// The largest error that the CANN ecosystem precision standard allows one element: below 10 T, relative to
/// |expected| + 1e-7. A difference below the type's smallest positive number is none. As opkit.testing, element by
/// element.
inline bool is_close(int32_t type, double actual, double expected) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
  double threshold = 0;
  double smallest = 0;
  switch (type) {
    case DT_FLOAT16: threshold = 0x1p-10, smallest = 0x1p-24; break;
    case DT_BF16: threshold = 0x1p-7, smallest = 0x1p-133; break;
    case DT_FLOAT: threshold = 0x1p-13, smallest = 0x1p-149; break;
    default: return actual == expected;
  }
  const double difference = std::fabs(actual - expected);
  return difference < smallest || difference / (std::fabs(expected) + 1e-7) < 10 * threshold;
}

/// Counts the wrong elements of one output and prints the first.
class Check {
 public:
  Check(const char* name, const Tensor& output) : name_(name), output_(output) {}
  void element(int64_t index, double expected) {
    const double actual = output_.at(index);
    if (is_close(output_.type, actual, expected)) return;
    if (wrong_++ == 0) std::printf("  %s[%lld] is %.9g, expected %.9g\n", name_, (long long)index, actual, expected);
  }
  bool passed() const { return wrong_ == 0; }

 private:
  const char* name_;
  const Tensor& output_;
  int64_t wrong_ = 0;
};

template <typename Value>
double reduce_sum(int64_t columns, Value value) {
  double total = 0;
  for (int64_t j = 0; j < columns; ++j) total += value(j);
  return total;
}
template <typename Value>
double reduce_mean(int64_t columns, Value value) {
  return reduce_sum(columns, value) / static_cast<double>(columns);
}
template <typename Value>
double reduce_max(int64_t columns, Value value) {
  double best = value(0);
  for (int64_t j = 1; j < columns; ++j) best = std::max<double>(best, value(j));
  return best;
}
template <typename Value>
double reduce_min(int64_t columns, Value value) {
  double best = value(0);
  for (int64_t j = 1; j < columns; ++j) best = std::min<double>(best, value(j));
  return best;
}

/// Infers the outputs and runs the operator; false, with the reason printed, when that fails.
inline bool run(opkit_library* library, const char* op_type, std::vector<Tensor>& inputs,
                const std::vector<size_t>& lengths, const extension::Attributes& attributes,
                std::vector<Tensor>& outputs, size_t output_count) {
  std::vector<opkit_tensor> input_views;
  for (Tensor& input : inputs) input_views.push_back(input.view());
  opkit_call call = {};
  call.inputs = input_views.data();
  call.input_count = input_views.size();
  call.attrs = attributes.data();
  call.attr_count = attributes.size();
  call.input_lengths = lengths.data();
  call.input_length_count = lengths.size();
  std::vector<opkit_shape> shapes(output_count);
  size_t count = output_count;
  if (opkit_infer(library, op_type, &call, shapes.data(), &count) != OPKIT_OK) {
    std::printf("  infer: %s\n", opkit_last_error());
    return false;
  }
  std::vector<opkit_tensor> output_views;
  for (const opkit_shape& shape : shapes) {
    outputs.emplace_back(shape.dtype, std::vector<int64_t>(shape.dims, shape.dims + shape.rank));
  }
  for (Tensor& output : outputs) output_views.push_back(output.view());
  if (opkit_run(library, op_type, &call, output_views.data(), output_views.size()) == OPKIT_OK) return true;
  std::printf("  run: %s\n", opkit_last_error());
  return false;
}

/// A kernel on one combination of data types.
struct Case {
  const char* name;
  bool (*test)(opkit_library*, const std::vector<int32_t>&);
  std::vector<int32_t> types;
};

/// Runs all cases and prints a line each; returns what main does: 1 when one fails, or the folder cannot be opened.
inline int run_cases(int argc, char** argv, const std::vector<Case>& cases) {
  const char* folder = argc > 1 ? argv[1] : "build/opkit";
  opkit_library* library = nullptr;
  if (opkit_library_open(folder, &library) != OPKIT_OK) {
    std::printf("%s: %s\n", folder, opkit_last_error());
    return 1;
  }
  int failed = 0;
  for (const Case& each : cases) {
    const bool passed = each.test(library, each.types);
    std::printf("%s %s\n", passed ? "passed" : "FAILED", each.name);
    failed += passed ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace opkit::kernel_test
