// Opening artifact folders and loading kernel variants.
#include "library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <memory>
#include <tuple>

#include "call_error.h"
#include "kernel_file.h"
#include "describe.h"
#include "dtypes.h"
#include "opkit/types.h"

namespace opkit::host {
namespace {

namespace fs = std::filesystem;

/// One state of one file: a rebuilt library is another file under the same name.
using FileIdentity = std::tuple<dev_t, ino_t, time_t, long>;

/// All zero when there is no such file.
FileIdentity identify(const fs::path& file) {
  struct stat state;
  if (stat(file.c_str(), &state) != 0) return {};
  return {state.st_dev, state.st_ino, state.st_mtim.tv_sec, state.st_mtim.tv_nsec};
}

/// One state of one artifact folder: its host library and its manifest, which every build that changes anything writes.
using FolderIdentity = std::tuple<std::string, FileIdentity, FileIdentity>;

/// The loader knows libraries by path: after a rebuild the same path would give the old one again.
fs::path respelt(const fs::path& folder, size_t generation) {
  fs::path path = folder;
  for (size_t i = 0; i < generation; ++i) path /= ".";
  return path;
}

/// Loads a host library and returns what it registers. The loader runs its constructors once in a process.
Registry load_host(const fs::path& file, TilingStructs* tiling_structs = nullptr) {
  Registry operators;
  const RegistrationScope scope(operators, tiling_structs);
  if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    fail(OPKIT_MISSING, std::string("the host library cannot be loaded: ") + dlerror());
  }
  if (!scope.refusal().empty()) fail(OPKIT_MISSING, file.string() + ": " + scope.refusal());
  if (operators.empty()) {
    fail(OPKIT_MISSING, file.string() + " registers no operator: OP_ADD(<class>) is missing in op_host");
  }
  return operators;
}

std::map<std::string, std::string> read_kernel_names(const fs::path& folder) {
  std::map<std::string, std::string> names;
  std::ifstream lines(folder / "kernels.txt");
  std::string op_type;
  std::string kernel;
  while (lines >> op_type >> kernel) names[op_type] = kernel;
  return names;
}

std::string dtype_list(const std::vector<int32_t>& dtypes) {
  std::string text;
  for (int32_t dtype : dtypes) text += (text.empty() ? "" : "-") + dtype_name(dtype);
  return text;
}

/// The variants of a kernel that a folder holds, for a message.
std::string built_variants(const fs::path& folder, const std::string& kernel) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_variant = name.rfind(kernel + ".", 0) == 0 && entry.path().extension() == ".so";
    if (is_variant) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  std::string text;
  for (const std::string& name : found) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no variant of it" : text;
}

}  // namespace

HostDescription describe_host(const std::string& file) {
  HostDescription description;
  description.operators = load_host(file, &description.tiling_structs);
  return description;
}

std::string snake_case(const std::string& op_type) {
  const auto is_upper = [&](size_t i) { return std::isupper(static_cast<unsigned char>(op_type[i])) != 0; };
  const auto is_lower = [&](size_t i) { return std::islower(static_cast<unsigned char>(op_type[i])) != 0; };
  std::string text;
  for (size_t i = 0; i < op_type.size(); ++i) {
    const bool is_after_capital = i > 0 && is_upper(i - 1);
    const bool is_after_word = i > 0 && (is_lower(i - 1) || std::isdigit(static_cast<unsigned char>(op_type[i - 1])));
    const bool is_before_lower = i + 1 < op_type.size() && is_lower(i + 1);
    if (is_upper(i) && (is_after_word || (is_after_capital && is_before_lower))) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(op_type[i])));
  }
  return text;
}

opkit_library& open_library(const char* folder) {
  static std::mutex lock;
  // Never closed: kernels and host functions may be in use as long as the process lives.
  static auto& libraries = *new std::map<FolderIdentity, std::unique_ptr<opkit_library>>();
  static auto& registries = *new std::map<FileIdentity, Registry>();
  static auto& generations = *new std::map<std::string, size_t>();

  if (folder == nullptr) fail(OPKIT_USAGE, "opkit_library_open needs a folder");
  std::error_code error;
  const fs::path path = fs::canonical(folder, error);
  if (error) fail(OPKIT_MISSING, std::string(folder) + ": " + error.message() + "; run \"opkit build\" first");
  const FileIdentity host = identify(path / "libop_host.so");
  if (host == FileIdentity()) {
    fail(OPKIT_MISSING, path.string() + " holds no libop_host.so: it is not an artifact folder; run \"opkit build\"");
  }
  const FolderIdentity identity(path.string(), host, identify(path / "manifest.json"));

  const std::lock_guard<std::mutex> guard(lock);
  if (const auto found = libraries.find(identity); found != libraries.end()) return *found->second;

  auto library = std::make_unique<opkit_library>();
  library->folder = path;
  library->load_folder = respelt(path, generations[path.string()]++);
  library->kernel_names = read_kernel_names(path);
  auto registry = registries.find(host);
  if (registry == registries.end()) {
    registry = registries.emplace(host, load_host(library->load_folder / "libop_host.so")).first;
  }
  library->operators = registry->second;
  return *libraries.emplace(identity, std::move(library)).first->second;
}

const Operator& find_operator(const opkit_library& library, const char* op_type) {
  const auto found = library.operators.find(op_type == nullptr ? "" : op_type);
  if (found != library.operators.end() && found->second.has_definition) return found->second;
  std::string known;
  for (const auto& [type, entry] : library.operators) {
    if (entry.has_definition) known += (known.empty() ? "" : ", ") + type;
  }
  fail(OPKIT_USAGE, library.folder.string() + " has no operator \"" + (op_type == nullptr ? "" : op_type) +
                        "\"; it has: " + (known.empty() ? "none" : known));
}

const Signature& find_signature(opkit_library& library, const Operator& entry, const std::string& soc_config) {
  const std::lock_guard<std::mutex> guard(library.lock);
  const auto [place, is_new] = library.signatures.try_emplace({&entry, soc_config});
  if (!is_new) return place->second;
  try {
    place->second = signature_for(entry, soc_config);
  } catch (...) {
    library.signatures.erase(place);
    throw;
  }
  return place->second;
}

KernelEntry find_kernel(opkit_library& library, const std::string& op_type, const std::string& npu_arch,
                        const std::vector<int32_t>& dtypes, uint64_t tiling_key) {
  const std::lock_guard<std::mutex> guard(library.lock);
  for (const FoundKernel& found : library.found_kernels) {
    if (found.op_type != op_type || found.npu_arch != npu_arch || found.dtypes != dtypes) continue;
    if (const auto entry = find_entry(*found.table, found.name.c_str(), tiling_key)) return *entry;
  }
  const auto named = library.kernel_names.find(op_type);
  const std::string kernel = named == library.kernel_names.end() ? snake_case(op_type) : named->second;
  const std::string file_name = kernel + "." + npu_arch + "." + dtype_list(dtypes) + ".so";

  const KernelTable*& table = library.kernels[file_name];
  const fs::path file = library.folder / file_name;
  if (table == nullptr && !fs::exists(file)) {
    fail(OPKIT_MISSING, "[" + op_type + "] there is no kernel " + file_name + " in " + library.folder.string() +
                            ", which holds " + built_variants(library.folder, kernel) +
                            "; run \"opkit build\" again, with -c CHIP for another chip");
  }
  if (table == nullptr) table = &load_kernel_file((library.load_folder / file_name).string());
  if (const auto entry = find_entry(*table, kernel.c_str(), tiling_key)) {
    library.found_kernels.push_back({op_type, npu_arch, dtypes, kernel, table});
    return *entry;
  }
  std::string keys;
  for (uint32_t i = 0; i < table->count; ++i) {
    if (kernel != table->entries[i].name) continue;
    keys += (keys.empty() ? "" : ", ") + std::to_string(table->entries[i].tiling_key);
  }
  if (keys.empty()) fail(OPKIT_MISSING, file.string() + " holds no kernel named \"" + kernel + "\"");
  fail(OPKIT_USAGE, "[" + op_type + "] its tiling function sets the tiling key " + std::to_string(tiling_key) +
                        ", and its kernel has instances for " + keys);
}

}  // namespace opkit::host
