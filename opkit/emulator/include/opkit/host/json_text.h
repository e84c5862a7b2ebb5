/// JSON values from text and back. Source: RFC 8259.
#pragma once

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "opkit/host/json_value.h"

namespace opkit::host {

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    Json value = read_value();
    if (peek() != '\0' || at_ != text_.size()) refuse("ends before its text does");
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != '\0') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void need(char wanted) {
    if (!take(wanted)) refuse(std::string("needs a '") + wanted + "'");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Json::parse_error("JSON: the text " + what + " at character " + std::to_string(at_));
  }

  Json read_value() {
    switch (peek()) {
      case '{': return read_object();
      case '[': return read_array();
      case '"': return Json(read_text());
      case 't': return read_word("true", Json(true));
      case 'f': return read_word("false", Json(false));
      case 'n': return read_word("null", Json());
      default: return read_number();
    }
  }
  Json read_object() {
    Json object = Json::object();
    need('{');
    if (take('}')) return object;
    do {
      if (peek() != '"') refuse("needs a name");
      const std::string key = read_text();
      need(':');
      object.object_[key] = read_value();
    } while (take(','));
    need('}');
    return object;
  }
  Json read_array() {
    Json array = Json::array();
    need('[');
    if (take(']')) return array;
    do array.array_.push_back(read_value());
    while (take(','));
    need(']');
    return array;
  }
  Json read_word(const std::string& word, const Json& value) {
    if (text_.compare(at_, word.size(), word) != 0) refuse("has no value");
    at_ += word.size();
    return value;
  }
  Json read_number() {
    const char* begin = text_.c_str() + at_;
    if (*begin != '-' && std::isdigit(static_cast<unsigned char>(*begin)) == 0) refuse("has no value");
    const size_t length = std::strspn(begin, "+-.eE0123456789");
    const bool is_whole = std::strcspn(begin, ".eE") >= length;
    char* end = nullptr;
    Json value = !is_whole       ? Json(std::strtod(begin, &end))
                 : *begin == '-' ? Json(static_cast<int64_t>(std::strtoll(begin, &end, 10)))
                                 : Json(static_cast<uint64_t>(std::strtoull(begin, &end, 10)));
    if (end != begin + length) refuse("has no number");
    at_ += length;
    return value;
  }
  std::string read_text() {
    need('"');
    std::string text;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      text += c == '\\' ? read_escape() : std::string(1, c);
    }
    need('"');
    return text;
  }
  std::string read_escape() {
    static constexpr const char* kNames = "bfnrt";
    static constexpr const char* kMeant = "\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (c == 'u') return read_code_point();
    if (c != '\0' && std::strchr("\"\\/", c) != nullptr) return std::string(1, c);
    const char* found = c == '\0' ? nullptr : std::strchr(kNames, c);
    if (found == nullptr) refuse("has an unknown escape");
    return std::string(1, kMeant[found - kNames]);
  }
  uint32_t read_unit() {
    const std::string digits = text_.substr(at_, 4);
    if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
      refuse("needs four hexadecimal digits");
    }
    at_ += 4;
    return static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
  }
  /// One \uXXXX, or two that are a pair, as UTF-8.
  std::string read_code_point() {
    uint32_t code = read_unit();
    if (code >= 0xd800 && code < 0xdc00 && text_.compare(at_, 2, "\\u") == 0) {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (read_unit() - 0xdc00);
    }
    const auto continued = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    if (code < 0x800) return {static_cast<char>(0xc0 | (code >> 6)), continued(0)};
    if (code < 0x10000) return {static_cast<char>(0xe0 | (code >> 12)), continued(6), continued(0)};
    return {static_cast<char>(0xf0 | (code >> 18)), continued(12), continued(6), continued(0)};
  }

  const std::string& text_;
  size_t at_ = 0;
};

class JsonWriter {
 public:
  /// `indent`: spaces a level; none and no line breaks where it is negative.
  explicit JsonWriter(int indent) : indent_(indent) {}

  std::string write(const Json& value, int depth = 0) const {
    switch (value.type()) {
      case Json::value_t::null: return "null";
      case Json::value_t::boolean: return value.unsigned_ != 0 ? "true" : "false";
      case Json::value_t::number_integer: return std::to_string(static_cast<int64_t>(value.unsigned_));
      case Json::value_t::number_unsigned: return std::to_string(value.unsigned_);
      case Json::value_t::number_float: return number(value.float_);
      case Json::value_t::string: return quoted(value.text_);
      case Json::value_t::array: return list(value, depth, "[", "]");
      case Json::value_t::object: return list(value, depth, "{", "}");
    }
    return "";
  }

 private:
  std::string list(const Json& value, int depth, const char* open, const char* close) const {
    std::string text;
    for (auto it = value.begin(); it != value.end(); ++it) {
      const std::string key = value.is_object() ? quoted(it.key()) + (indent_ < 0 ? ":" : ": ") : "";
      text += (text.empty() ? "" : ",") + break_at(depth + 1) + key + write(*it, depth + 1);
    }
    return text.empty() ? std::string(open) + close : open + text + break_at(depth) + close;
  }
  std::string break_at(int depth) const {
    return indent_ < 0 ? "" : "\n" + std::string(static_cast<size_t>(indent_ * depth), ' ');
  }
  static std::string number(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    // The fewest digits that are the same number again.
    for (int digits = 15; digits <= 17; ++digits) {
      std::snprintf(text, sizeof(text), "%.*g", digits, value);
      if (std::strtod(text, nullptr) == value) break;
    }
    return std::strpbrk(text, ".e") != nullptr ? text : std::string(text) + ".0";
  }
  static std::string quoted(const std::string& value) {
    std::string text = "\"";
    for (const char c : value) {
      char escaped[8] = {c};
      if (c == '"' || c == '\\') {
        std::snprintf(escaped, sizeof(escaped), "\\%c", c);
      } else if (static_cast<unsigned char>(c) < 0x20) {
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
      }
      text += escaped;
    }
    return text + "\"";
  }

  int indent_;
};

inline Json Json::parse(const std::string& text) { return JsonReader(text).read(); }
inline std::string Json::dump(int indent) const { return JsonWriter(indent).write(*this); }

}  // namespace opkit::host
