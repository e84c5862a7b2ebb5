/// Host functions of the high-level API that opkit refuses by name where they are called; see refused.inc.
#pragma once

#include <stdexcept>
#include <string>

#include "opkit/high_level/types.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/vector_tiling.h"

namespace opkit::host {

/// Ends a tiling function, whose caller is told the text.
[[noreturn]] inline void refuse(const char* name) {
  throw std::runtime_error(std::string(name) +
                           " is not implemented in opkit: no kernel of an emulated chip can use it");
}

}  // namespace opkit::host

namespace AscendC {

// Whoever asks the compiler which names opkit has defines it: these are none.
#ifndef OPKIT_NO_MISSING_NAMES
struct CosConfig;
struct SinConfig;
struct TopKConfig;

#define OPKIT_REFUSED(name, result, ...) \
  inline result name(__VA_ARGS__) { ::opkit::host::refuse(#name); }
#include "opkit/host/refused.inc"
#undef OPKIT_REFUSED
#endif

}  // namespace AscendC
