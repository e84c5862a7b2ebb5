/// Tensors in blocks of 32 bytes, as the device's memory has them: a kernel may touch what rounds a tensor up to a
/// whole block. Where a caller's memory ends within a block, the tensor is copied to memory that does not, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace opkit::host {

constexpr uint64_t kBlockBytes = 32;

constexpr uint64_t whole_blocks(uint64_t size_bytes) {
  return (size_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

/// The memory of one launch's tensors.
class Staging {
 public:
  /// Makes room for so many tensors.
  void reserve(size_t count) { tensors_.reserve(count); }
  /// Names a tensor; one that overlaps another in part stays where it is, since copies would part them.
  void add(void* data, uint64_t size_bytes);

  /// Copies what ends within a block; what lies behind a tensor is filled with `fill`.
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

  std::vector<Tensor> tensors_;
  std::list<std::vector<uint8_t>> memory_;
};

}  // namespace opkit::host
