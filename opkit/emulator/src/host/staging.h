/// Tensors in whole blocks, as the device's memory has them: a kernel may touch what rounds a tensor up to one. Where a
/// caller's memory has no such room, the tensor is copied to memory that has, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace opkit::host {

/// What an allocation has room for, and where it begins.
struct Room {
  uint64_t block_bytes;   ///< its size is a multiple
  uint64_t behind_bytes;  ///< at least so many behind the tensor

  uint64_t size_bytes(uint64_t tensor_bytes) const {
    return (tensor_bytes + behind_bytes + block_bytes - 1) / block_bytes * block_bytes;
  }
};

/// What every allocation of the device has. Source: aclrtMallocAlign32, its description.
constexpr Room kDataBlock{32, 0};
/// What PyTorch's allocator gives a tensor on these chips. Source: torch_npu's NPUCachingAllocator, rounding of sizes.
constexpr Room kAllocatorBlock{512, 32};

/// What addresses of tensors are multiples of: kernels compute with where a cache line of theirs begins. Source: as
/// kAllocatorBlock.
constexpr uint64_t kBeginBytes = 512;

/// The memory of one launch's tensors.
class Staging {
 public:
  explicit Staging(Room room) : room_(room) {}
  /// Makes room for so many tensors.
  void reserve(size_t count) { tensors_.reserve(count); }
  /// Names a tensor; one that overlaps another in part stays where it is, since copies would part them.
  void add(void* data, uint64_t size_bytes);

  /// Copies what has no room of its own; what lies behind a tensor is filled with `fill`.
  void copy_in(int fill);
  /// Copies back what a kernel may have changed.
  void copy_out(const void* data);

  /// Calls a function with where each tensor lay that was copied, where the caller has it, and its size in bytes.
  template <typename Function>
  void each_copy(Function function) const {
    for (const Tensor& tensor : tensors_) {
      if (tensor.block != nullptr) function(tensor.block, tensor.data, tensor.size_bytes);
    }
  }

  /// Where the kernel finds a tensor.
  void* address(void* data) const;
  /// What the kernel may touch of it, in bytes.
  uint64_t size_bytes(void* data, uint64_t size_bytes) const;

 private:
  struct Tensor {
    uint8_t* data;
    uint64_t size_bytes;
    uint8_t* block = nullptr;  ///< null where the caller's memory serves
  };
  const Tensor* find(const void* data) const;

  Room room_;
  std::vector<Tensor> tensors_;
  std::list<std::vector<uint8_t>> memory_;
};

}  // namespace opkit::host
