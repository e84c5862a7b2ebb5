// Tensors in whole blocks of memory.
#include "staging.h"

#include <algorithm>
#include <cstring>

namespace opkit::host {

void Staging::add(void* data, uint64_t size_bytes) {
  if (data == nullptr || size_bytes == 0) return;
  auto* begin = static_cast<uint8_t*>(data);
  for (Tensor& known : tensors_) {
    if (known.data == begin) {
      known.size_bytes = std::max(known.size_bytes, size_bytes);
      return;
    }
  }
  tensors_.push_back({begin, size_bytes});
}

void Staging::copy_in(int fill) {
  for (Tensor& tensor : tensors_) {
    const uint8_t* end = tensor.data + tensor.size_bytes;
    const bool overlaps = std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& other) {
      return &other != &tensor && other.data < end && tensor.data < other.data + other.size_bytes;
    });
    const uint64_t rounded = room_.size_bytes(tensor.size_bytes);
    if (overlaps || rounded == tensor.size_bytes) continue;
    std::vector<uint8_t>& memory = memory_.emplace_back(rounded + kBeginBytes);
    const auto misplaced = reinterpret_cast<uint64_t>(memory.data()) % kBeginBytes;
    tensor.block = memory.data() + (misplaced == 0 ? 0 : kBeginBytes - misplaced);
    std::memcpy(tensor.block, tensor.data, tensor.size_bytes);
    std::memset(tensor.block + tensor.size_bytes, fill, rounded - tensor.size_bytes);
  }
}

void Staging::copy_out(const void* data) {
  const Tensor* tensor = find(data);
  if (tensor != nullptr && tensor->block != nullptr) std::memcpy(tensor->data, tensor->block, tensor->size_bytes);
}

void* Staging::address(void* data) const {
  const Tensor* tensor = find(data);
  return tensor != nullptr && tensor->block != nullptr ? tensor->block : data;
}

uint64_t Staging::size_bytes(void* data, uint64_t size_bytes) const {
  const Tensor* tensor = find(data);
  return tensor != nullptr && tensor->block != nullptr ? room_.size_bytes(size_bytes) : size_bytes;
}

const Staging::Tensor* Staging::find(const void* data) const {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [data](const Tensor& tensor) { return tensor.data == data; });
  return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace opkit::host
