/// Kernels that were compiled once for each kind of core, as their text asks by `#ifdef __DAV_C220_VEC__` and the like:
/// the one of the core that runs is called. See toolchain/source/core_passes.py, which writes the table.
#pragma once

#include <tuple>
#include <type_traits>

#if defined(OPKIT_CORE_PASSES)
#include "opkit/api/runtime_abi.h"

namespace opkit {

/// A function as it was compiled for vector cores and for cube cores.
struct CoreTwin {
  const void* vector;
  const void* cube;
};

}  // namespace opkit

extern "C" __attribute__((weak, visibility("hidden"))) const opkit::CoreTwin __start_opkit_core_twins[];
extern "C" __attribute__((weak, visibility("hidden"))) const opkit::CoreTwin __stop_opkit_core_twins[];
#endif

namespace opkit {

/// A function as it was compiled for the kind of core that calls; faults where there is none.
template <typename Function>
Function* of_this_core(Function* function) {
  static_assert(std::is_function_v<Function>);
#if defined(OPKIT_CORE_PASSES)
  if (!core_variables().is_cube) return function;
  for (const CoreTwin* twin = __start_opkit_core_twins; twin != __stop_opkit_core_twins; ++twin) {
    if (twin->vector == reinterpret_cast<const void*>(function)) {
      return reinterpret_cast<Function*>(const_cast<void*>(twin->cube));
    }
  }
  illegal_operand(
      "this kernel's text asks for the kind of core, and it was not compiled for cube cores: launch it by "
      "its name",
      Where::here());
#endif
  return function;
}

/// Calls a kernel, or a lambda that calls one, as it was compiled for the kind of core that runs. `self` is the caller
/// as launches have it: what the lambda's text calls is found by it.
template <typename Callable, typename Arguments>
void call_on_this_core(void (*self)(void* const*), void* const* pointers, const Callable& callable,
                       const Arguments& arguments) {
  if constexpr (std::is_pointer_v<Callable>) {
    std::apply(of_this_core(callable), arguments);
  } else if (auto* other = of_this_core(self); other != self) {
    other(pointers);
  } else {
    std::apply(callable, arguments);
  }
}

}  // namespace opkit
