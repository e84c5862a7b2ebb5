/// What a TilingParse function reads and writes: it prepares, once an operator and chip, what every later tiling call
/// may read through GetCompileInfo. Source: basic data structures API, gert::TilingParseContext.
#pragma once

#include "platform/platform_infos_def.h"

namespace gert {

class TilingParseContext {
 public:
  TilingParseContext(const char* node_name, const char* node_type, void* compile_info, fe::PlatFormInfos* platform)
      : node_name_(node_name), node_type_(node_type), compile_info_(compile_info), platform_(platform) {}

  const char* GetNodeName() const { return node_name_; }
  const char* GetNodeType() const { return node_type_; }
  fe::PlatFormInfos* GetPlatformInfo() const { return platform_; }
  /// What a compiler of single shapes would hand over; no kernel here is compiled for one shape, so it is empty.
  const char* GetCompiledJson() const { return "{}"; }

  template <typename T>
  T* GetCompiledInfo() const {
    return static_cast<T*>(compile_info_);
  }

 private:
  const char* node_name_;
  const char* node_type_;
  void* compile_info_;
  fe::PlatFormInfos* platform_;
};

}  // namespace gert
