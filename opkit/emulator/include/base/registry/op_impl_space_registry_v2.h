/// The functions that host code in this process has registered, by operator type.
///
///     auto registry = gert::DefaultOpImplSpaceRegistryV2::GetInstance().GetSpaceRegistry();
///     const auto* functions = registry->GetOpImpl("AddCustom");  // null: nothing registers that operator
///     functions->tiling(context);
///
/// Source of names and use: unit tests of public operator libraries (tests/ut/common, tests/ut/op_kernel).
#pragma once

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "graph/ascend_string.h"
#include "register/op_impl_registry.h"

namespace gert {

struct OpImplKernelRegistry {
  /// Null where host code registers no such function.
  struct OpImplFunctionsV2 {
    OpImplRegisterV2::InferShapeKernelFunc infer_shape = nullptr;
    OpImplRegisterV2::InferDataTypeKernelFunc infer_datatype = nullptr;
    OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
    OpImplRegisterV2::TilingParseKernelFunc tiling_parse = nullptr;
    void* (*compile_info_creator)() = nullptr;
  };
};

/// Libraries with host code, by path.
class OppSoDesc {
 public:
  OppSoDesc(std::vector<ge::AscendString> paths, const ge::AscendString& package)
      : paths_(std::move(paths)), package_(package) {}
  const std::vector<ge::AscendString>& GetSoPaths() const { return paths_; }
  const ge::AscendString& GetPackageName() const { return package_; }

 private:
  std::vector<ge::AscendString> paths_;
  ge::AscendString package_;
};

class OpImplSpaceRegistryV2 {
 public:
  /// Loads the libraries, which register what they have; they stay loaded. GRAPH_FAILED where one cannot be loaded.
  ge::graphStatus AddSoToRegistry(const OppSoDesc& libraries) {
    for (const ge::AscendString& path : libraries.GetSoPaths()) {
      if (dlopen(path.GetString(), RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
      opkit_log(opkit::host::LogLevel::Error, "AddSoToRegistry", __FILE__, __LINE__, dlerror());
      return ge::GRAPH_FAILED;
    }
    return ge::GRAPH_SUCCESS;
  }

  const OpImplKernelRegistry::OpImplFunctionsV2* GetOpImpl(const char* op_type) const {
    opkit::host::OpFunctions found = {};
    if (op_type == nullptr || !opkit_find_functions(op_type, &found)) return nullptr;
    const std::lock_guard<std::mutex> guard(lock_);
    auto& functions = functions_[op_type];
    functions.infer_shape = found.infer_shape;
    functions.infer_datatype = found.infer_data_type;
    functions.tiling = found.tiling;
    functions.tiling_parse = found.tiling_parse;
    functions.compile_info_creator = found.create_compile_info;
    return &functions;
  }

 private:
  mutable std::mutex lock_;
  mutable std::map<std::string, OpImplKernelRegistry::OpImplFunctionsV2> functions_;
};

/// The one that the process uses; until it is set, one that knows what the program and its libraries register.
class DefaultOpImplSpaceRegistryV2 {
 public:
  static DefaultOpImplSpaceRegistryV2& GetInstance() {
    static DefaultOpImplSpaceRegistryV2 instance;
    return instance;
  }
  const std::shared_ptr<OpImplSpaceRegistryV2>& GetSpaceRegistry() const { return registry_; }
  void SetSpaceRegistry(const std::shared_ptr<OpImplSpaceRegistryV2>& registry) { registry_ = registry; }

 private:
  std::shared_ptr<OpImplSpaceRegistryV2> registry_ = std::make_shared<OpImplSpaceRegistryV2>();
};

}  // namespace gert
