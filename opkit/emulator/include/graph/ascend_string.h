/// A string as the graph engine's interfaces pass it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace ge {

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char* name) : text_(name == nullptr ? "" : name) {}
  AscendString(const char* name, size_t length) : text_(name, length) {}

  const char* GetString() const { return text_.c_str(); }
  size_t GetLength() const { return text_.size(); }

  bool operator==(const AscendString& other) const { return text_ == other.text_; }
  bool operator!=(const AscendString& other) const { return text_ != other.text_; }
  bool operator<(const AscendString& other) const { return text_ < other.text_; }

 private:
  std::string text_;
};

}  // namespace ge
