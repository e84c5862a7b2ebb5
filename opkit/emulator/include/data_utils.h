/// Files to memory and back, as programs that run kernels on the host do it. A project's own header of this name comes
/// first. Source: public guide, kernels called directly, data_utils.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

/// Reads a whole file into a buffer and sets how many bytes there were; false, with a reason on stderr, where it is not
/// there, is empty or is larger than the buffer.
inline bool ReadFile(const std::string& path, size_t& size_bytes, void* buffer, size_t buffer_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto end = file ? static_cast<std::streamoff>(file.tellg()) : std::streamoff{-1};
  if (end <= 0 || buffer == nullptr || static_cast<size_t>(end) > buffer_bytes) {
    std::fprintf(stderr, "ReadFile: %s %s\n", path.c_str(),
                 end < 0 ? "cannot be read" : (end == 0 ? "is empty" : "does not fit into the buffer"));
    return false;
  }
  file.seekg(0);
  file.read(static_cast<char*>(buffer), end);
  size_bytes = static_cast<size_t>(end);
  return file.good();
}

/// Writes a buffer to a file; false, with a reason on stderr, where that cannot be done.
inline bool WriteFile(const std::string& path, const void* buffer, size_t size_bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (buffer != nullptr) file.write(static_cast<const char*>(buffer), static_cast<std::streamsize>(size_bytes));
  file.close();
  if (buffer != nullptr && file) return true;
  std::fprintf(stderr, "WriteFile: %s cannot be written\n", path.c_str());
  return false;
}
