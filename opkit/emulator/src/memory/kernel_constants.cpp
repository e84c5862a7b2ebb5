#include "memory/kernel_constants.h"

#include <link.h>

namespace opkit {

namespace {

struct Search {
  uint64_t kernel;
  uint64_t begin;
  uint64_t end;
  bool is_found = false;
};

/// Whether a loaded segment of the object holds all of [begin, end).
bool holds(const dl_phdr_info& object, uint64_t begin, uint64_t end, bool only_constants) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    if (only_constants && (segment.p_flags & (PF_R | PF_W | PF_X)) != PF_R) continue;
    const uint64_t start = object.dlpi_addr + segment.p_vaddr;
    if (begin >= start && end <= start + segment.p_memsz) return true;
  }
  return false;
}

int look_at(dl_phdr_info* object, size_t, void* context) {
  Search& search = *static_cast<Search*>(context);
  if (!holds(*object, search.kernel, search.kernel + 1, false)) return 0;
  search.is_found = holds(*object, search.begin, search.end, true);
  return 1;
}

}  // namespace

bool is_kernel_constant(const Launch& launch, uint64_t address, uint64_t bytes) {
  Search search = {reinterpret_cast<uint64_t>(launch.invoke), address, address + bytes};
  dl_iterate_phdr(look_at, &search);
  return search.is_found;
}

}  // namespace opkit
