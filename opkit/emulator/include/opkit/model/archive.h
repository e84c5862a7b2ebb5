/// The members of a zip file that are stored as they are.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace opkit::model {

inline uint32_t crc32_of(const char* data, size_t count) {
  static const auto table = [] {
    std::array<uint32_t, 256> rows{};
    for (uint32_t i = 0; i < rows.size(); ++i) {
      uint32_t row = i;
      for (int bit = 0; bit < 8; ++bit) row = (row >> 1) ^ ((row & 1) != 0 ? 0xEDB88320u : 0u);
      rows[i] = row;
    }
    return rows;
  }();
  uint32_t sum = ~0u;
  for (size_t i = 0; i < count; ++i) sum = (sum >> 8) ^ table[(sum ^ static_cast<uint8_t>(data[i])) & 0xFF];
  return ~sum;
}

/// Throws std::invalid_argument where there is no such file.
inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (file) file.peek();  // a folder opens, and cannot be read
  if (!file.is_open() || file.bad()) throw std::invalid_argument(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Source of the layout: PKWARE, .ZIP File Format Specification (APPNOTE.TXT), 4.3.
class Archive {
 public:
  /// Throws std::runtime_error where these are not the bytes of one.
  explicit Archive(std::string bytes) : bytes_(std::move(bytes)) {
    constexpr size_t kEnd = 22, kCentral = 46, kLocal = 30, kLargest = 0xFFFFFFFF;
    size_t end = bytes_.size() < kEnd ? std::string::npos : bytes_.rfind("PK\5\6", bytes_.size() - kEnd);
    if (end == std::string::npos) throw std::runtime_error("it is no zip file");
    size_t at = number(end + 16, 4);
    for (uint64_t left = number(end + 10, 2); left > 0; --left) {
      if (number(at, 4) != 0x02014B50) throw std::runtime_error("its list of members is damaged");
      const uint64_t how = number(at + 10, 2), sum = number(at + 16, 4), size = number(at + 24, 4);
      const uint64_t name_size = number(at + 28, 2), local = number(at + 42, 4);
      // Larger ones say so by the largest number, and their sizes elsewhere.
      if (size == kLargest || local == kLargest)
        throw std::runtime_error("it has more than 4 GiB, which is not read here");
      check(at + kCentral, name_size);
      const std::string name = bytes_.substr(at + kCentral, name_size);
      at += kCentral + name_size + number(at + 30, 2) + number(at + 32, 2);
      if (how != 0) throw std::runtime_error(name + " is compressed: write the model again, Model.save stores");
      const uint64_t begin = local + kLocal + number(local + 26, 2) + number(local + 28, 2);
      check(begin, size);
      if (crc32_of(bytes_.data() + begin, size) != sum) throw std::runtime_error(name + " is not what was written");
      members_[name] = bytes_.substr(begin, size);
    }
    bytes_.clear();
  }

  const std::string& operator[](const std::string& name) const {
    const auto found = members_.find(name);
    if (found == members_.end()) throw std::runtime_error("it has no " + name);
    return found->second;
  }

 private:
  void check(uint64_t at, uint64_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) throw std::runtime_error("it ends too early");
  }
  uint64_t number(uint64_t at, size_t count) const {
    check(at, count);
    uint64_t found = 0;
    for (size_t i = count; i-- > 0;) found = (found << 8) | static_cast<uint8_t>(bytes_[at + i]);
    return found;
  }

  std::string bytes_;
  std::map<std::string, std::string> members_;
};

}  // namespace opkit::model
