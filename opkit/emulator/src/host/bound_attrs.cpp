// Binding a call's attributes to those of the OpDef.
#include <algorithm>
#include <string>

#include "bound_call.h"

namespace opkit::host {
namespace {

/// An integer is accepted where a float is wanted, and 0 or 1 where a bool is: Python callers do not tell them apart.
bool convert(AttrValue& value, opkit_attr_kind wanted) {
  if (value.kind == wanted) return true;
  if (value.kind == OPKIT_ATTR_INT && wanted == OPKIT_ATTR_FLOAT) {
    value.float_value = static_cast<double>(value.int_value);
  } else if (value.kind == OPKIT_ATTR_BOOL && wanted == OPKIT_ATTR_INT) {
    value.int_value = value.int_value != 0 ? 1 : 0;
  } else if (value.kind == OPKIT_ATTR_INT && wanted == OPKIT_ATTR_BOOL) {
    if (value.int_value != 0 && value.int_value != 1) return false;
  } else if (value.kind == OPKIT_ATTR_LIST_INT && wanted == OPKIT_ATTR_LIST_FLOAT) {
    value.floats.assign(value.ints.begin(), value.ints.end());
  } else if (value.kind == OPKIT_ATTR_LIST_INT && wanted == OPKIT_ATTR_LIST_BOOL) {
    if (std::any_of(value.ints.begin(), value.ints.end(), [](int64_t item) { return item != 0 && item != 1; })) {
      return false;
    }
  } else if (value.kind == OPKIT_ATTR_LIST_INT && wanted == OPKIT_ATTR_LIST_LIST_INT) {
    // An empty list says nothing of what it would hold.
    if (!value.ints.empty()) return false;
  } else if (value.kind == OPKIT_ATTR_LIST_BOOL && wanted == OPKIT_ATTR_LIST_INT) {
    // The same storage.
  } else {
    return false;
  }
  value.kind = wanted;
  return true;
}

std::string attr_names(const Operator& entry) {
  std::string text;
  for (const Attr& attr : entry.attrs) text += (text.empty() ? "" : ", ") + attr.name;
  return text.empty() ? "none" : text;
}

}  // namespace

BoundAttrs::BoundAttrs(const Operator& entry, const opkit_call& call) {
  const auto refuse = [&](const std::string& what) { fail(OPKIT_USAGE, "[" + entry.type + "] " + what); };
  pointers_.reserve(entry.attrs.size() + entry.private_attrs.size());
  for (size_t i = 0; i < call.attr_count; ++i) {
    const char* name = call.attrs[i].name;
    const bool is_known = name != nullptr && std::any_of(entry.attrs.begin(), entry.attrs.end(),
                                                         [&](const Attr& attr) { return attr.name == name; });
    if (!is_known) {
      refuse(std::string("has no attribute \"") + (name == nullptr ? "" : name) + "\"; it has: " + attr_names(entry));
    }
  }
  for (const Attr& attr : entry.attrs) {
    const opkit_attr* end = call.attrs + call.attr_count;
    const opkit_attr* given =
        std::find_if(call.attrs, end, [&](const opkit_attr& candidate) { return attr.name == candidate.name; });
    if (given == end) {
      if (attr.is_required && !attr.has_default) {
        refuse("needs its attribute \"" + attr.name + "\" (" + kind_name(attr.default_value.kind) + ")");
      }
      // An optional attribute without a default is not there: GetAttrPointer gives null.
      pointers_.push_back(attr.has_default ? store(attr.default_value) : nullptr);
      continue;
    }
    AttrValue value = attr_value(*given);
    if (!convert(value, attr.default_value.kind)) {
      refuse("its attribute \"" + attr.name + "\" is " + kind_name(attr.default_value.kind) + ", not " +
             kind_name(given->kind));
    }
    pointers_.push_back(store(value));
  }
  for (const Attr& attr : entry.private_attrs) {
    pointers_.push_back(attr.has_default ? store(attr.default_value) : nullptr);
  }
  attrs_ = std::make_unique<gert::RuntimeAttrs>(pointers_.data(), pointers_.size());
}

const void* BoundAttrs::store(const AttrValue& value) {
  switch (value.kind) {
    case OPKIT_ATTR_INT: return &ints_.emplace_back(value.int_value);
    case OPKIT_ATTR_FLOAT: return &floats_.emplace_back(static_cast<float>(value.float_value));
    case OPKIT_ATTR_BOOL: return &bools_.emplace_back(value.int_value != 0);
    case OPKIT_ATTR_STRING: return strings_.emplace_back(value.string_value).c_str();
    case OPKIT_ATTR_LIST_INT: {
      auto& list = int_lists_.emplace_back(value.ints);
      return &vectors_.emplace_back(list.data(), list.size());
    }
    case OPKIT_ATTR_LIST_FLOAT: {
      auto& list = float_lists_.emplace_back(value.floats.begin(), value.floats.end());
      return &vectors_.emplace_back(list.data(), list.size());
    }
    case OPKIT_ATTR_LIST_BOOL: {
      auto& list = bool_lists_.emplace_back(std::make_unique<bool[]>(value.ints.size()));
      std::transform(value.ints.begin(), value.ints.end(), list.get(), [](int64_t item) { return item != 0; });
      return &vectors_.emplace_back(list.get(), value.ints.size());
    }
    case OPKIT_ATTR_LIST_LIST_INT: {
      auto& values = int_lists_.emplace_back(value.ints);
      auto& lists = inner_lists_.emplace_back();
      int64_t* next = values.data();
      for (size_t length : value.list_lengths) {
        lists.emplace_back(next, length);
        next += length;
      }
      return &list_lists_.emplace_back(lists.data(), lists.size());
    }
  }
  return nullptr;
}

}  // namespace opkit::host
