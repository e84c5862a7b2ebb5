#include "acl/caller.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstdlib>

namespace opkit::acl {
namespace {

thread_local const void* outermost = nullptr;

}  // namespace

Caller::Caller(const void* address) : is_outermost_(outermost == nullptr) {
  if (is_outermost_) outermost = address;
}

Caller::~Caller() {
  if (is_outermost_) outermost = nullptr;
}

const void* Caller::current() { return outermost; }

Site site_of_call(const void* address, const char* function) {
  Site site;
  site.instruction = function;
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return site;
  char* path = realpath(info.dli_fname, nullptr);  // the program may change its folder later
  site.module = path == nullptr ? info.dli_fname : path;
  std::free(path);
  // The call itself ends one byte before where it returns to. Programs linked to a fixed address count from zero.
  const auto call = reinterpret_cast<uint64_t>(address) - 1;
  const auto base = reinterpret_cast<uint64_t>(info.dli_fbase);
  const bool is_fixed = static_cast<const Elf64_Ehdr*>(info.dli_fbase)->e_type == ET_EXEC;
  site.offset = is_fixed ? call : call - base;
  return site;
}

}  // namespace opkit::acl
