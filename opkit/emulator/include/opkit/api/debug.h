/// printf and assertions in kernels. Source: Ascend C API, debugging interfaces.
#pragma once

#include "opkit/api/runtime_abi.h"

namespace AscendC {

template <typename... Arguments>
inline void printf(const char* format, Arguments... arguments) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
  opkit::kernel_print(format, arguments...);
#pragma GCC diagnostic pop
}
#define PRINTF(...) ::AscendC::printf(__VA_ARGS__)

}  // namespace AscendC

#define ASSERT(condition)                                                                \
  do {                                                                                   \
    if (!(condition)) ::opkit::kernel_assertion(#condition, "", ::opkit::Where::here()); \
  } while (false)
#define ascendc_assert(condition, ...)                                                   \
  do {                                                                                   \
    if (!(condition)) ::opkit::kernel_assertion(#condition, "", ::opkit::Where::here()); \
  } while (false)
#define ASCENDC_ASSERT(condition, behaviour)                             \
  do {                                                                   \
    if (!(condition)) {                                                  \
      behaviour;                                                         \
      ::opkit::kernel_assertion(#condition, "", ::opkit::Where::here()); \
    }                                                                    \
  } while (false)
