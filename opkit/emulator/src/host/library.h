/// An artifact folder that has been opened: its operators and the kernel variants loaded so far.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "opkit/kernel_entry.h"
#include "operator.h"
#include "signature.h"

namespace opkit::host {

/// A kernel that was found, and by what.
struct FoundKernel {
  std::string op_type;
  std::string npu_arch;
  std::vector<int32_t> dtypes;
  std::string name;
  const KernelTable* table;
};

}  // namespace opkit::host

/// The opaque type of op_call.h.
struct opkit_library {
  std::filesystem::path folder;
  std::filesystem::path load_folder;  ///< the same folder, spelt so that the loader has not seen it before
  opkit::host::Registry operators;
  std::map<std::string, std::string> kernel_names;  ///< by operator type, from kernels.txt

  std::mutex lock;                                                     ///< of what follows
  std::map<std::string, const opkit::KernelTable*> kernels;            ///< by file name
  std::map<std::pair<std::string, std::string>, void*> compile_infos;  ///< by operator type and chip
  std::vector<opkit::host::FoundKernel> found_kernels;
  std::map<std::pair<const opkit::host::Operator*, std::string>, opkit::host::Signature>
      signatures;  ///< by chip family
};

namespace opkit::host {

/// Opens a folder, or finds it among those that are open; a folder that was built again since is opened anew.
/// Throws CallError.
opkit_library& open_library(const char* folder);

/// The operator of that type; throws CallError with the known types when there is none.
const Operator& find_operator(const opkit_library& library, const char* op_type);

/// The params of one of the library's operators on a chip family, such as ascend910b. Throws CallError.
const Signature& find_signature(opkit_library& library, const Operator& entry, const std::string& soc_config);

/// The kernel for these dtypes (inputs, then outputs) on a chip's architecture, or its instance for a tiling key.
/// Throws CallError.
KernelEntry find_kernel(opkit_library& library, const std::string& op_type, const std::string& npu_arch,
                        const std::vector<int32_t>& dtypes, uint64_t tiling_key);

/// File and kernel name of an operator type: AbcAAc is abc_a_ac. `opkit/schema/names.py` has the same rule.
std::string snake_case(const std::string& op_type);

}  // namespace opkit::host
