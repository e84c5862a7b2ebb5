// Launching single kernels: their shared objects, found once, and what these say of themselves.
#include "opkit/kernel_call.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "call_error.h"
#include "core/launch.h"
#include "kernel_file.h"
#include "launch_run.h"
#include "guarded.h"

struct opkit_kernel {
  std::string name;
  const opkit::KernelTable* table;
  opkit::KernelEntry entry;  ///< for launches without a tiling key
};

namespace opkit::host {
namespace {

/// Enough for every kernel that people write; more arguments take memory of their own.
constexpr size_t kUsualArguments = 16;

std::mutex kernels_lock;
thread_local uint64_t instruction_count = 0;

std::map<std::pair<std::string, std::string>, std::unique_ptr<opkit_kernel>>& kernels() {
  static auto* all = new std::map<std::pair<std::string, std::string>, std::unique_ptr<opkit_kernel>>();
  return *all;
}

std::string kernel_list(const KernelTable& table) {
  std::string names;
  for (uint32_t i = 0; i < table.count; ++i) {
    if (table.entries[i].invoke != nullptr) names += (names.empty() ? "" : ", ") + std::string(table.entries[i].name);
  }
  return names.empty() ? "none" : names;
}

opkit_kernel* open_kernel(const std::string& file, const char* name) {
  const std::lock_guard<std::mutex> guard(kernels_lock);
  std::unique_ptr<opkit_kernel>& kernel = kernels()[{file, name == nullptr ? "" : name}];
  if (kernel != nullptr) return kernel.get();
  const KernelTable& table = load_kernel_file(file);
  const std::string wanted = name != nullptr ? name : only_name(file, table);
  const auto entry = any_entry(table, wanted);
  if (!entry) fail(OPKIT_USAGE, file + " has no kernel \"" + wanted + "\"; it has: " + kernel_list(table));
  kernel = std::make_unique<opkit_kernel>(opkit_kernel{wanted, &table, *entry});
  return kernel.get();
}

void check_argument(const opkit_kernel& kernel, const KernelEntry& entry, size_t index,
                    const opkit_kernel_argument& argument) {
  const std::string place = "argument " + std::to_string(index + 1) + " of " + kernel.name;
  const uint32_t wanted = entry.argument_bytes == nullptr ? 0 : entry.argument_bytes[index];
  if (argument.is_value == 0) {
    if (wanted != 0 && wanted != sizeof(void*)) {
      fail(OPKIT_USAGE, place + " is a value of " + std::to_string(wanted) + " bytes, not global memory");
    }
    return;
  }
  if (argument.data == nullptr) fail(OPKIT_USAGE, place + " is a value, and the pointer to it is null");
  if (wanted != 0 && argument.size_bytes != wanted) {
    fail(OPKIT_USAGE, place + " has " + std::to_string(wanted) + " bytes, not " + std::to_string(argument.size_bytes));
  }
}

std::vector<GmRange> ranges_of(const opkit_kernel_argument* arguments, size_t count) {
  std::vector<GmRange> ranges;
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].is_value != 0 || arguments[i].data == nullptr) continue;
    const auto begin = reinterpret_cast<uint64_t>(arguments[i].data);
    ranges.push_back({begin, begin + arguments[i].size_bytes, true, "argument " + std::to_string(i)});
  }
  return sorted_ranges(std::move(ranges));
}

opkit_status run(const opkit_kernel& kernel, const opkit_kernel_argument* arguments, size_t count, uint32_t block_dim,
                 uint64_t tiling_key) {
  KernelEntry entry = kernel.entry;
  if (tiling_key != 0 || entry.has_key) {
    const auto found = find_entry(*kernel.table, kernel.name.c_str(), tiling_key);
    if (!found) fail(OPKIT_USAGE, kernel.name + " has no instance for the tiling key " + std::to_string(tiling_key));
    entry = *found;
  }
  if (count != entry.argument_count) {
    fail(OPKIT_USAGE,
         kernel.name + " takes " + std::to_string(entry.argument_count) + " arguments, not " + std::to_string(count));
  }
  if (block_dim == 0) fail(OPKIT_USAGE, kernel.name + ": block_dim must be at least 1");
  void* few_addresses[kUsualArguments];
  void* few_pointers[kUsualArguments];
  std::vector<void*> more(count > kUsualArguments ? 2 * count : 0);
  void** addresses = more.empty() ? few_addresses : more.data();
  void** pointers = more.empty() ? few_pointers : more.data() + count;
  for (size_t i = 0; i < count; ++i) {
    check_argument(kernel, entry, i, arguments[i]);
    addresses[i] = arguments[i].data;
    pointers[i] = arguments[i].is_value != 0 ? arguments[i].data : static_cast<void*>(&addresses[i]);
  }
  Launch launch;
  launch.kernel = kernel.name.c_str();
  launch.invoke = entry.invoke;
  launch.arguments = pointers;
  launch.mode = entry.mode;
  launch.block_dim = block_dim;
  launch.tiling_key = tiling_key;
  launch.chooses_branch = true;
  launch.gm = ranges_of(arguments, count);
  // Nothing says which arguments are results: any may be.
  if (!Device::get().config().allows_raw_writes) {
    for (GmRange& range : launch.gm) range.is_output = true;
  }
  const LaunchRecord record = Device::get().run(launch);
  instruction_count = record.instructions;
  return record.fault.fault == Fault::None ? OPKIT_OK : report_fault(record.fault);
}

}  // namespace

uint64_t last_instruction_count() { return instruction_count; }

}  // namespace opkit::host

opkit_status opkit_kernel_open(const char* file, const char* name, opkit_kernel** kernel) {
  using namespace opkit::host;
  return guarded([&] {
    if (file == nullptr || kernel == nullptr) fail(OPKIT_USAGE, "opkit_kernel_open needs a file and a place");
    *kernel = open_kernel(file, name);
    return OPKIT_OK;
  });
}

opkit_status opkit_kernel_launch(const opkit_kernel* kernel, const opkit_kernel_argument* arguments,
                                 size_t argument_count, uint32_t block_dim, uint64_t tiling_key) {
  using namespace opkit::host;
  return guarded([&] {
    if (kernel == nullptr) fail(OPKIT_USAGE, "the kernel is null: opkit_kernel_open has failed or was not called");
    return run(*kernel, arguments, argument_count, block_dim, tiling_key);
  });
}

opkit_status opkit_kernel_describe(const char* file, const char** json) {
  using namespace opkit::host;
  return guarded([&] {
    static thread_local std::string text;
    text = kernel_file_json(load_kernel_file(file));
    *json = text.c_str();
    return OPKIT_OK;
  });
}
