/// Names of the public API that opkit lacks, so that a kernel which calls one is told so and not that it is undeclared.
/// OPKIT_NO_MISSING_NAMES leaves them out: whoever asks the compiler which names there are defines it.
#pragma once

#ifndef OPKIT_NO_MISSING_NAMES

namespace opkit::detail {
template <typename... T>
constexpr bool is_implemented = false;
}  // namespace opkit::detail

// Four forms: explicit template arguments may be types, values, or one or two types and then values.
#define OPKIT_MISSING_BODY(name)                               \
  static_assert(::opkit::detail::is_implemented<Arguments...>, \
                #name " is not implemented in opkit; see `opkit isa --missing`")
#define OPKIT_MISSING(name)                                                            \
  template <typename... Explicit, typename... Arguments>                               \
  inline void name(Arguments&&...) {                                                   \
    OPKIT_MISSING_BODY(name);                                                          \
  }                                                                                    \
  template <auto value, auto... values, typename... Arguments>                         \
  inline void name(Arguments&&...) {                                                   \
    OPKIT_MISSING_BODY(name);                                                          \
  }                                                                                    \
  template <typename T, auto value, auto... values, typename... Arguments>             \
  inline void name(Arguments&&...) {                                                   \
    OPKIT_MISSING_BODY(name);                                                          \
  }                                                                                    \
  template <typename T, typename U, auto value, auto... values, typename... Arguments> \
  inline void name(Arguments&&...) {                                                   \
    OPKIT_MISSING_BODY(name);                                                          \
  }

namespace AscendC {
#include "opkit/isa/missing.inc"
}  // namespace AscendC

#undef OPKIT_MISSING
#undef OPKIT_MISSING_BODY

#endif  // OPKIT_NO_MISSING_NAMES
