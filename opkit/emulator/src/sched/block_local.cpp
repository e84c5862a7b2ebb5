#include "sched/block_local.h"

#include <link.h>

#include <cstring>

/// Of the C library: the address of a thread-local variable, by object and offset. Source: ELF Handling For
/// Thread-Local Storage, the general dynamic model.
struct opkit_tls_index {
  unsigned long module;
  unsigned long offset;
};
extern "C" void* __tls_get_addr(opkit_tls_index*);

namespace opkit {
namespace {

struct Search {
  uintptr_t address;
  BlockLocals found;
};

int look_into(dl_phdr_info* object, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  bool holds_it = false;
  size_t bytes = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && search.address >= begin && search.address < begin + part.p_memsz) holds_it = true;
    if (part.p_type == PT_TLS) bytes = part.p_memsz;
  }
  if (!holds_it) return 0;
  if (bytes != 0) search.found = {object->dlpi_tls_modid, bytes};
  return 1;
}

uint8_t* on_this_thread(const BlockLocals& locals) {
  opkit_tls_index first = {locals.module, 0};
  return static_cast<uint8_t*>(__tls_get_addr(&first));
}

}  // namespace

BlockLocals find_block_locals(void (*function)(void* const*)) {
  Search search = {reinterpret_cast<uintptr_t>(function), {}};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

void save_block_locals(const BlockLocals& locals, std::vector<uint8_t>& to) {
  if (locals.module == 0) return;
  const uint8_t* from = on_this_thread(locals);
  to.assign(from, from + locals.bytes);
}

void restore_block_locals(const BlockLocals& locals, const std::vector<uint8_t>& from) {
  if (locals.module != 0) std::memcpy(on_this_thread(locals), from.data(), from.size());
}

}  // namespace opkit
