/// Launching the device's kernels on tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <string>

#include "plans.h"
#include "runtime/program.h"

namespace opkit::npu {

/// Above this, whole numbers are the CPU's: the scalar unit takes them one by one.
inline constexpr int64_t kWholeLimit = 1 << 16;
inline constexpr const char* kTooManyWhole =
    "more than 65536 whole numbers: the vector unit has no lanes of 64 bits, the scalar unit takes one at a time";

/// Whether the kernels have been compiled and loaded.
bool has_kernels();

/// Loads the library of kernels; what went wrong, or empty.
std::string load_kernels(const char* path);

/// How a tensor lies in memory for the kernels; none where the chip has no such type.
std::optional<kernels::Kind> kind_of(at::ScalarType type);

/// A tensor, or a number where a 0-dim tensor of the host stands for one.
struct Argument {
  char* data = nullptr;
  kernels::Kind kind = kernels::Kind::F32;
  uint64_t extent_bytes = 0;             ///< from its first element to its last
  c10::SmallVector<int64_t, 6> strides;  ///< elements, innermost first
};

/// A number of a call, both ways.
struct Number {
  double real = 0;
  int64_t whole = 0;
};

/// One launch of a program: all arguments over one space of indices, innermost dim first.
struct MapCall {
  const char* name = "";
  c10::SmallVector<int64_t, 6> shape;
  c10::SmallVector<Argument, 6> inputs;
  c10::SmallVector<Argument, 2> outputs;
  c10::SmallVector<Number, 4> numbers;
  bool is_whole = false;
  kernels::Fold fold = kernels::Fold::None;
  uint64_t folded = 0;  ///< a bit for each dim of `shape` that is folded
};

/// Runs it; a reason where the kernel cannot.
const char* run_program(const Program& program, const MapCall& call, c10::DeviceIndex device);

/// One launch of a program for several lines of elements that lie side by side; a fold leaves one of each.
struct ListCall {
  const char* name = "";
  c10::SmallVector<kernels::Kind, 6> kinds;  ///< of the inputs, then of the outputs
  c10::SmallVector<int64_t, 8> sizes;        ///< of the lines
  c10::SmallVector<char*, 32> data;          ///< line after line: its inputs, then its outputs
  c10::SmallVector<Number, 4> numbers;
  kernels::Fold fold = kernels::Fold::None;
};

/// Runs it; a reason where the kernel cannot.
const char* run_list(const Program& program, const ListCall& call, c10::DeviceIndex device);

struct Range {
  const void* data;
  uint64_t bytes;
  bool is_written;
};

/// Launches one of the other kernels: pointers, then its plan. Throws for a fault.
void launch(const char* kernel, const char* name, c10::ArrayRef<void*> pointers, c10::ArrayRef<Range> ranges,
            const void* plan, size_t plan_bytes, uint32_t blocks, c10::DeviceIndex device);

uint32_t vector_cores();
uint32_t cube_cores();

}  // namespace opkit::npu
