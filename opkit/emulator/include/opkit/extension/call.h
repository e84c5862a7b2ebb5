/// What the bindings of every project share: the attributes of a call, and where the artifact folder is.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <list>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/op_call.h"

namespace opkit::extension {

/// The attributes of one call. Strings and lists stay where the caller has them.
class Attributes {
 public:
  void add(const char* name, int64_t value) { entry(name, OPKIT_ATTR_INT).int_value = value; }
  void add(const char* name, double value) { entry(name, OPKIT_ATTR_FLOAT).float_value = value; }
  void add(const char* name, bool value) { entry(name, OPKIT_ATTR_BOOL).int_value = value; }
  void add(const char* name, const std::string& value) { entry(name, OPKIT_ATTR_STRING).string_value = value.c_str(); }
  void add(const char* name, const std::vector<int64_t>& values) {
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_INT);
    attr.int_list = values.data();
    attr.list_length = values.size();
  }
  void add(const char* name, const std::vector<double>& values) {
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_FLOAT);
    attr.float_list = values.data();
    attr.list_length = values.size();
  }
  void add(const char* name, const std::vector<bool>& values) {
    // The C interface carries booleans as integers.
    copies_.emplace_back(values.begin(), values.end());
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_BOOL);
    attr.int_list = copies_.back().data();
    attr.list_length = values.size();
  }
  void add(const char* name, const std::vector<std::vector<int64_t>>& lists) {
    // The C interface carries the values of all lists in a row.
    std::vector<int64_t>& values = copies_.emplace_back();
    std::vector<size_t>& lengths = lengths_.emplace_back();
    for (const std::vector<int64_t>& list : lists) {
      values.insert(values.end(), list.begin(), list.end());
      lengths.push_back(list.size());
    }
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_LIST_INT);
    attr.int_list = values.data();
    attr.list_length = lists.size();
    attr.list_lengths = lengths.data();
  }
  const opkit_attr* data() const { return attrs_.data(); }
  size_t size() const { return attrs_.size(); }

 private:
  opkit_attr& entry(const char* name, opkit_attr_kind kind) {
    opkit_attr attr = {};
    attr.name = name;
    attr.kind = kind;
    return attrs_.emplace_back(attr);
  }

  std::vector<opkit_attr> attrs_;
  std::list<std::vector<int64_t>> copies_;
  std::list<std::vector<size_t>> lengths_;
};

/// The folder that this library lies in: the artifact folder that `opkit build` wrote.
inline std::string artifact_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&artifact_folder), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// The artifact folder, opened on the first call. `check` throws for a status other than OPKIT_OK; the next call then
/// tries again.
template <typename Check>
opkit_library* open_once(Check check) {
  static opkit_library* opened = [&] {
    opkit_library* result = nullptr;
    check(opkit_library_open(artifact_folder().c_str(), &result));
    return result;
  }();
  return opened;
}

/// The inputs of one call as the C interface takes them.
class InputViews {
 public:
  void add(const opkit_tensor& tensor) {
    lengths_.push_back(1);
    tensors_.push_back(tensor);
  }
  void add_absent() { add({nullptr, nullptr, -1, 0}); }
  /// A dynamic input; its tensors follow by `append`.
  void begin_list(size_t length) {
    if (list_length_ == kNoList) list_length_ = length;
    lengths_.push_back(length);
  }
  void append(const opkit_tensor& tensor) { tensors_.push_back(tensor); }
  /// Refuses values of the input that was added last which int32, in which its kernel computes, does not hold.
  void check_int32(const char* name) const {
    constexpr int32_t kInt64 = 9;
    const size_t count = lengths_.empty() ? 0 : lengths_.back();
    for (size_t at = tensors_.size() - count; at < tensors_.size(); ++at) {
      const opkit_tensor& tensor = tensors_[at];
      if (tensor.dtype != kInt64 || tensor.data == nullptr) continue;
      int64_t elements = 1;
      for (int32_t dim = 0; dim < tensor.rank; ++dim) elements *= tensor.shape[dim];
      const auto* values = static_cast<const int64_t*>(tensor.data);
      for (int64_t i = 0; i < elements; ++i) {
        if (values[i] == static_cast<int32_t>(values[i])) continue;
        throw std::overflow_error(std::string(name) + " holds " + std::to_string(values[i]) +
                                  ", which int32, in which the kernel computes, does not");
      }
    }
  }
  /// The tensors of a dynamic output: as many as the first dynamic input has.
  size_t list_length() const { return list_length_ == kNoList ? 0 : list_length_; }

  opkit_call call_with(const Attributes& attributes) const {
    opkit_call call = {};
    call.inputs = tensors_.data();
    call.input_count = tensors_.size();
    call.attrs = attributes.data();
    call.attr_count = attributes.size();
    call.input_lengths = lengths_.data();
    call.input_length_count = lengths_.size();
    return call;
  }

 private:
  static constexpr size_t kNoList = SIZE_MAX;

  std::vector<opkit_tensor> tensors_;
  std::vector<size_t> lengths_;  // tensors of each input
  size_t list_length_ = kNoList;
};

}  // namespace opkit::extension
