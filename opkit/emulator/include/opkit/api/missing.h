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

#define OPKIT_MISSING_VALUE(name)               \
  struct name##_is_not_implemented_in_opkit {}; \
  inline constexpr name##_is_not_implemented_in_opkit name{};
// A type is complete, so that functions which take one say so too.
#define OPKIT_MISSING_TEMPLATE(name) \
  template <typename... Arguments>   \
  struct name {                      \
    OPKIT_MISSING_BODY(name);        \
  };
#define OPKIT_MISSING_TYPE(name)              \
  template <typename... Arguments>            \
  struct name##_is_not_implemented_in_opkit { \
    OPKIT_MISSING_BODY(name);                 \
  };                                          \
  using name = name##_is_not_implemented_in_opkit<>;
#define OPKIT_MISSING_BUILTIN(name)

namespace AscendC {
#include "opkit/isa/missing.inc"
}  // namespace AscendC

#undef OPKIT_MISSING
#undef OPKIT_MISSING_VALUE
#undef OPKIT_MISSING_TYPE
#undef OPKIT_MISSING_TEMPLATE
#undef OPKIT_MISSING_BUILTIN
#define OPKIT_MISSING(name)
#define OPKIT_MISSING_VALUE(name)
#define OPKIT_MISSING_TYPE(name)
#define OPKIT_MISSING_TEMPLATE(name)
// A function of the kernel's own with the same name goes first: an ellipsis is the last choice.
#define OPKIT_MISSING_BUILTIN(name) \
  template <typename... Arguments>  \
  inline void name(...) {           \
    OPKIT_MISSING_BODY(name);       \
  }

#include "opkit/isa/missing.inc"

#undef OPKIT_MISSING
#undef OPKIT_MISSING_VALUE
#undef OPKIT_MISSING_TYPE
#undef OPKIT_MISSING_TEMPLATE
#undef OPKIT_MISSING_BUILTIN
#undef OPKIT_MISSING_BODY

#endif  // OPKIT_NO_MISSING_NAMES
