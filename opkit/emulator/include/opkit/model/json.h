/// JSON as a value: what a model file's description is read with.
#pragma once

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace opkit::model {

/// One value of a JSON text. What is asked of it and is not there is a std::runtime_error.
class Json {
 public:
  static Json parse(const std::string& text) {
    Reader reader{text, 0, 0};
    Json value = reader.value();
    reader.skip();
    if (reader.at != text.size()) reader.fail("more than one value");
    return value;
  }

  const Json& operator[](const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) throw std::runtime_error("its description has no \"" + key + "\"");
    return found->second;
  }
  const std::vector<Json>& items() const { return expect(Kind::List, items_); }
  const std::map<std::string, Json>& members() const { return expect(Kind::Object, members_); }
  const std::string& text() const { return expect(Kind::Text, text_); }
  int64_t whole() const {
    const std::string& digits = expect(Kind::Number, text_);
    char* end = nullptr;
    errno = 0;
    const int64_t found = std::strtoll(digits.c_str(), &end, 10);
    if (*end != '\0' || errno == ERANGE) wrong();
    return found;
  }
  /// A number that is not below zero: a size or an index.
  uint64_t size() const {
    const int64_t found = whole();
    if (found < 0) wrong();
    return static_cast<uint64_t>(found);
  }
  bool is_text() const { return kind_ == Kind::Text; }

 private:
  enum class Kind { Null, Truth, Number, Text, List, Object };

  [[noreturn]] static void wrong() { throw std::runtime_error("its description mixes up kinds of values"); }
  template <typename T>
  const T& expect(Kind kind, const T& value) const {
    if (kind_ != kind) wrong();
    return value;
  }

  struct Reader {
    const std::string& text;
    size_t at;
    int depth;

    [[noreturn]] void fail(const std::string& what) const {
      throw std::runtime_error("its description is no JSON: " + what + " at byte " + std::to_string(at));
    }
    void skip() {
      while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
    }
    bool take(char wanted) {
      skip();
      if (at >= text.size() || text[at] != wanted) return false;
      ++at;
      return true;
    }
    void need(char wanted) {
      if (!take(wanted)) fail(std::string("no ") + wanted);
    }
    bool word(const char* wanted) {
      const std::string all = wanted;
      if (text.compare(at, all.size(), all) != 0) return false;
      at += all.size();
      return true;
    }

    Json value() {
      constexpr int kDeepest = 64;
      if (++depth > kDeepest) fail("too many levels");
      skip();
      Json made;
      if (take('{')) {
        made.kind_ = Kind::Object;
        for (bool first = true; !take('}'); first = false) {
          if (!first) need(',');
          skip();
          const std::string key = string();
          need(':');
          made.members_[key] = value();
        }
      } else if (take('[')) {
        made.kind_ = Kind::List;
        for (bool first = true; !take(']'); first = false) {
          if (!first) need(',');
          made.items_.push_back(value());
        }
      } else if (at < text.size() && text[at] == '"') {
        made.kind_ = Kind::Text;
        made.text_ = string();
      } else if (word("true") || word("false")) {
        made.kind_ = Kind::Truth;
      } else if (!word("null")) {
        made.kind_ = Kind::Number;
        const size_t end = text.find_first_not_of("+-.0123456789eE", at);
        made.text_ = text.substr(at, end == std::string::npos ? end : end - at);
        if (made.text_.empty()) fail("no value");
        at += made.text_.size();
      }
      --depth;
      return made;
    }

    std::string string() {
      if (at >= text.size() || text[at] != '"') fail("no name");
      ++at;
      std::string found;
      while (at < text.size() && text[at] != '"') {
        if (text[at] != '\\') {
          found += text[at++];
          continue;
        }
        if (at + 1 >= text.size()) break;
        const char escaped = text[at + 1];
        at += 2;
        if (escaped == 'u') {
          code(found);
        } else {
          const std::string from = "nrtbf", to = "\n\r\t\b\f";
          const size_t which = from.find(escaped);
          found += which == std::string::npos ? escaped : to[which];
        }
      }
      if (at >= text.size()) fail("an open text");
      ++at;
      return found;
    }

    /// Four hexadecimal digits as UTF-8; halves of a pair stay apart, as nothing here compares such names.
    void code(std::string& found) {
      if (at + 4 > text.size()) fail("an open text");
      const auto point = static_cast<uint32_t>(std::strtoul(text.substr(at, 4).c_str(), nullptr, 16));
      at += 4;
      if (point < 0x80) {
        found += static_cast<char>(point);
      } else if (point < 0x800) {
        found += static_cast<char>(0xC0 | (point >> 6));
        found += static_cast<char>(0x80 | (point & 0x3F));
      } else {
        found += static_cast<char>(0xE0 | (point >> 12));
        found += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
        found += static_cast<char>(0x80 | (point & 0x3F));
      }
    }
  };

  Kind kind_ = Kind::Null;
  std::string text_;
  std::vector<Json> items_;
  std::map<std::string, Json> members_;
};

}  // namespace opkit::model
