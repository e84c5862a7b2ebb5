#include "sched/counter_readers.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "opkit/api/runtime_abi.h"

namespace opkit {
namespace {

/// What the loader is asked for, and where this library lies itself.
struct Counter {
  const char* symbol = nullptr;
  uint64_t base = 0;

  static const Counter& get() {
    static const Counter counter = [] {
      Counter result;
      Dl_info info;
      if (dladdr(reinterpret_cast<void*>(&system_cycle), &info) != 0) {
        result.symbol = info.dli_sname;
        result.base = reinterpret_cast<uint64_t>(info.dli_fbase);
      }
      return result;
    }();
    return counter;
  }
};

bool holds_address(const dl_phdr_info& object, uint64_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = object.dlpi_phdr[i];
    const uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

/// Whether the object has the name among the symbols that others define for it: they stand before those that its hash
/// table lists. Source: ELF, DT_SYMTAB and DT_STRTAB; the GNU hash table's second word is where its symbols begin.
bool asks_for(const dl_phdr_info& object, const char* name) {
  const ElfW(Sym)* symbols = nullptr;
  const char* texts = nullptr;
  const uint32_t* hashes = nullptr;
  const auto place = [&object](uint64_t address) {
    return address < object.dlpi_addr ? object.dlpi_addr + address : address;  // some loaders have relocated it
  };
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const uint64_t address = place(entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_GNU_HASH) hashes = reinterpret_cast<const uint32_t*>(address);
    }
  }
  if (symbols == nullptr || texts == nullptr || hashes == nullptr) return false;
  const uint32_t first_defined = hashes[1];
  for (uint32_t i = 1; i < first_defined; ++i) {
    if (symbols[i].st_shndx == SHN_UNDEF && std::strcmp(texts + symbols[i].st_name, name) == 0) return true;
  }
  return false;
}

struct CounterSearch {
  uint64_t kernel;
  bool is_anywhere;  ///< whose kernel it is cannot be told by where it is entered
  bool is_found = false;
};

int look_for_counter(dl_phdr_info* object, size_t, void* context) {
  auto& search = *static_cast<CounterSearch*>(context);
  const bool is_kernels = holds_address(*object, search.kernel);
  if (!is_kernels && !search.is_anywhere) return 0;
  search.is_found = asks_for(*object, Counter::get().symbol);
  return search.is_found || !search.is_anywhere ? 1 : 0;
}

}  // namespace

bool reads_system_counter(const Launch& launch) {
  if (Counter::get().symbol == nullptr) return false;
  Dl_info info;
  const bool is_known = dladdr(reinterpret_cast<void*>(launch.invoke), &info) != 0;
  const bool is_own = is_known && reinterpret_cast<uint64_t>(info.dli_fbase) == Counter::get().base;
  CounterSearch search = {reinterpret_cast<uint64_t>(launch.invoke), is_own};
  dl_iterate_phdr(look_for_counter, &search);
  return search.is_found;
}

}  // namespace opkit
