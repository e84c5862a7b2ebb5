/// An operator of a graph, as functions see it that the graph engine calls: CheckSupport, OpSelectFormat. opkit builds
/// no graphs, so such functions compile and are never called; an Operator made by hand works. Source: graph engine API,
/// ge::Operator, ge::TensorDesc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/ge_error_codes.h"
#include "graph/tensor.h"
#include "graph/types.h"

namespace ge {

class TensorDesc {
 public:
  TensorDesc() = default;
  explicit TensorDesc(Shape shape, Format format = FORMAT_ND, DataType type = DT_FLOAT)
      : shape_(std::move(shape)), origin_shape_(shape_), format_(format), origin_format_(format), type_(type) {}

  Shape GetShape() const { return shape_; }
  void SetShape(const Shape& shape) { shape_ = shape; }
  Shape GetOriginShape() const { return origin_shape_; }
  void SetOriginShape(const Shape& shape) { origin_shape_ = shape; }
  Format GetFormat() const { return format_; }
  void SetFormat(Format format) { format_ = format; }
  Format GetOriginFormat() const { return origin_format_; }
  void SetOriginFormat(Format format) { origin_format_ = format; }
  DataType GetDataType() const { return type_; }
  void SetDataType(DataType type) { type_ = type; }

 private:
  Shape shape_;
  Shape origin_shape_;
  Format format_ = FORMAT_ND;
  Format origin_format_ = FORMAT_ND;
  DataType type_ = DT_FLOAT;
};

class Operator {
 public:
  Operator() = default;
  explicit Operator(const char* type) : type_(type) {}
  Operator(const char* name, const char* type) : name_(name), type_(type) {}

  graphStatus GetName(AscendString& name) const { return name = AscendString(name_.c_str()), GRAPH_SUCCESS; }
  graphStatus GetOpType(AscendString& type) const { return type = AscendString(type_.c_str()), GRAPH_SUCCESS; }
  size_t GetInputsSize() const { return inputs_.size(); }
  size_t GetOutputsSize() const { return outputs_.size(); }

  // Of a pointer, too, there is the string's alone: a plain 0 is an index.
  TensorDesc GetInputDesc(const std::string& name) const { return find(inputs_, name); }
  TensorDesc GetInputDesc(uint32_t index) const { return at(inputs_, index); }
  TensorDesc GetInputDescByName(const char* name) const { return find(inputs_, name); }
  TensorDesc GetOutputDesc(const std::string& name) const { return find(outputs_, name); }
  TensorDesc GetOutputDesc(uint32_t index) const { return at(outputs_, index); }
  TensorDesc GetOutputDescByName(const char* name) const { return find(outputs_, name); }
  graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc) { return update(inputs_, name, desc); }
  graphStatus UpdateOutputDesc(const char* name, const TensorDesc& desc) { return update(outputs_, name, desc); }

  /// GRAPH_FAILED, and `value` as it was, where there is no such attribute of that type.
  template <typename T>
  graphStatus GetAttr(const char* name, T& value) const {
    const auto found = attrs_.find(name);
    if (found == attrs_.end() || !std::holds_alternative<T>(found->second)) return GRAPH_FAILED;
    value = std::get<T>(found->second);
    return GRAPH_SUCCESS;
  }
  template <typename T>
  graphStatus GetAttr(const std::string& name, T& value) const {
    return GetAttr(name.c_str(), value);
  }
  template <typename T>
  Operator& SetAttr(const char* name, const T& value) {
    attrs_[name] = value;
    return *this;
  }

 private:
  using Descs = std::vector<std::pair<std::string, TensorDesc>>;
  using Attr = std::variant<int64_t, int32_t, uint32_t, float, bool, AscendString, std::vector<int64_t>,
                            std::vector<int32_t>, std::vector<float>, std::vector<bool>>;

  static TensorDesc find(const Descs& descs, const std::string& name) {
    for (const auto& [known, desc] : descs) {
      if (known == name) return desc;
    }
    return TensorDesc();
  }
  static TensorDesc at(const Descs& descs, uint32_t index) {
    return index < descs.size() ? descs[index].second : TensorDesc();
  }
  static graphStatus update(Descs& descs, const char* name, const TensorDesc& desc) {
    for (auto& [known, place] : descs) {
      if (known == name) return place = desc, GRAPH_SUCCESS;
    }
    descs.emplace_back(name, desc);
    return GRAPH_SUCCESS;
  }

  std::string name_;
  std::string type_;
  Descs inputs_;
  Descs outputs_;
  std::map<std::string, Attr> attrs_;
};

}  // namespace ge
