#include "kernel_file.h"

#include <dlfcn.h>

#include <cstring>
#include <set>

#include "call_error.h"

namespace opkit::host {
namespace {

constexpr const char* kModeNames[] = {"vector", "cube", "mix 1:1", "mix 1:2"};

std::string quoted(const char* text) {
  std::string out = "\"";
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') out += '\\';
    out += *text;
  }
  return out + '"';
}

std::string entry_json(const KernelEntry& entry, KernelMode mode) {
  std::string bytes;
  for (uint32_t i = 0; entry.argument_bytes != nullptr && i < entry.argument_count; ++i) {
    bytes += (i == 0 ? "" : ", ") + std::to_string(entry.argument_bytes[i]);
  }
  return "{\"name\": " + quoted(entry.name) + ", \"mode\": " + quoted(kModeNames[static_cast<size_t>(mode)]) +
         ", \"tiling_key\": " + (entry.has_key ? std::to_string(entry.tiling_key) : "null") +
         ", \"argument_bytes\": [" + bytes + "], \"is_template\": " + (entry.invoke == nullptr ? "true" : "false") +
         "}";
}

/// Behind "T = " in what __PRETTY_FUNCTION__ gives a template.
std::string type_name(const char* text) {
  const char* begin = std::strstr(text, "T = ");
  if (begin == nullptr) return text;
  begin += 4;
  const char* end = begin + std::strcspn(begin, ";]");
  return {begin, end};
}

}  // namespace

const KernelTable& load_kernel_file(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(OPKIT_MISSING, std::string("a kernel cannot be loaded: ") + dlerror());
  const auto* table = static_cast<const KernelTable*>(dlsym(library, "opkit_kernel_table"));
  if (table == nullptr) fail(OPKIT_MISSING, file + " is not a kernel: it exports no opkit_kernel_table");
  if (!is_compatible(*table)) {
    fail(OPKIT_MISSING, file + " was built for another version of opkit (kernel ABI " +
                            std::to_string(table->abi_version) + ", this one has " + std::to_string(kAbiVersion) +
                            ", or another instruction table): build it again");
  }
  return *table;
}

std::string only_name(const std::string& file, const KernelTable& table) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < table.count; ++i) {
    if (table.entries[i].invoke != nullptr) names.insert(table.entries[i].name);
  }
  if (names.size() == 1) return *names.begin();
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  fail(OPKIT_USAGE, file + (names.empty() ? " has no kernel" : " has several kernels: say which of " + list));
}

std::optional<KernelEntry> any_entry(const KernelTable& table, const std::string& name) {
  std::optional<KernelEntry> found;
  for (uint32_t i = 0; i < table.count; ++i) {
    const KernelEntry& entry = table.entries[i];
    if (entry.invoke == nullptr || name != entry.name || (found && entry.has_key)) continue;
    found = entry;
    found->mode = mode_of(entry, *table.notes, entry.tiling_key);
  }
  return found;
}

std::string kernel_file_json(const KernelTable& table) {
  std::string kernels;
  for (uint32_t i = 0; i < table.count; ++i) {
    const KernelEntry& entry = table.entries[i];
    kernels += (i == 0 ? "" : ", ") + entry_json(entry, mode_of(entry, *table.notes, entry.tiling_key));
  }
  std::string modes;
  for (const ModeNote* note = table.notes->modes; note != nullptr; note = note->next) {
    if (!note->has_key) continue;
    modes += std::string(modes.empty() ? "" : ", ") + "{\"function\": " + quoted(note->function) +
             ", \"tiling_key\": " + std::to_string(note->tiling_key) +
             ", \"mode\": " + quoted(kModeNames[static_cast<size_t>(note->mode)]) + "}";
  }
  std::string tilings;
  for (const TilingNote* note = table.notes->tilings; note != nullptr; note = note->next) {
    tilings += std::string(tilings.empty() ? "" : ", ") + "{\"function\": " + quoted(note->function) +
               ", \"name\": " + quoted(type_name(note->struct_name).c_str()) +
               ", \"size_bytes\": " + std::to_string(note->size_bytes) + "}";
  }
  std::set<uint64_t> keys;
  for (const BranchNote* note = table.notes->branches; note != nullptr; note = note->next)
    keys.insert(note->tiling_key);
  for (uint32_t i = 0; i < table.count; ++i) {
    if (table.entries[i].has_key) keys.insert(table.entries[i].tiling_key);
  }
  std::string branches;
  for (const uint64_t key : keys) branches += (branches.empty() ? "" : ", ") + std::to_string(key);
  return "{\"kernels\": [" + kernels + "], \"keyed_modes\": [" + modes + "], \"tiling_structs\": [" + tilings +
         "], \"tiling_keys\": [" + branches + "]}";
}

}  // namespace opkit::host
