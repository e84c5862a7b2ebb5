/// JSON under the name that public host code includes it by: the installed library of that name where there is one,
/// else what opkit has of it: values, text, and structs by NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE.
#pragma once

#if __has_include_next(<nlohmann/json.hpp>)
#include_next <nlohmann/json.hpp>
#else
#include "opkit/host/json_text.h"
#include "opkit/host/json_value.h"

namespace nlohmann {
using json = opkit::host::Json;
}  // namespace nlohmann

// Each member by its name, both ways. A member's macro is used again for the members behind it.
#define OPKIT_JSON_PARENTHESES ()
#define OPKIT_JSON_SCAN1(...) __VA_ARGS__
#define OPKIT_JSON_SCAN4(...) OPKIT_JSON_SCAN1(OPKIT_JSON_SCAN1(OPKIT_JSON_SCAN1(OPKIT_JSON_SCAN1(__VA_ARGS__))))
#define OPKIT_JSON_SCAN16(...) OPKIT_JSON_SCAN4(OPKIT_JSON_SCAN4(OPKIT_JSON_SCAN4(OPKIT_JSON_SCAN4(__VA_ARGS__))))
#define OPKIT_JSON_SCAN64(...) OPKIT_JSON_SCAN16(OPKIT_JSON_SCAN16(OPKIT_JSON_SCAN16(OPKIT_JSON_SCAN16(__VA_ARGS__))))
#define OPKIT_JSON_EACH(macro, member, ...) \
  macro(member) __VA_OPT__(OPKIT_JSON_AGAIN OPKIT_JSON_PARENTHESES(macro, __VA_ARGS__))
#define OPKIT_JSON_AGAIN() OPKIT_JSON_EACH
#define OPKIT_JSON_WRITE(member) opkit_json[#member] = opkit_value.member;
#define OPKIT_JSON_READ(member) opkit_json.at(#member).get_to(opkit_value.member);
#define NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Type, ...)                                             \
  [[maybe_unused]] inline void to_json(::nlohmann::json& opkit_json, const Type& opkit_value) {   \
    OPKIT_JSON_SCAN64(OPKIT_JSON_EACH(OPKIT_JSON_WRITE, __VA_ARGS__))                             \
  }                                                                                               \
  [[maybe_unused]] inline void from_json(const ::nlohmann::json& opkit_json, Type& opkit_value) { \
    OPKIT_JSON_SCAN64(OPKIT_JSON_EACH(OPKIT_JSON_READ, __VA_ARGS__))                              \
  }
#endif
