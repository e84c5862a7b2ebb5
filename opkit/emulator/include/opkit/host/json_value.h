/// JSON values for host code that reads and writes them: what nlohmann/json.hpp gives where nothing else does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace opkit::host {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsTextMap : std::false_type {};
template <typename T>
struct IsTextMap<std::map<std::string, T>> : std::true_type {};

class Json {
 public:
  enum class value_t { null, object, array, string, boolean, number_integer, number_unsigned, number_float };

  class exception : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };
  class parse_error : public exception {
   public:
    using exception::exception;
  };
  class type_error : public exception {
   public:
    using exception::exception;
  };
  class out_of_range : public exception {
   public:
    using exception::exception;
  };

  using object_t = std::map<std::string, Json>;
  using array_t = std::vector<Json>;

  /// Elements of an array, or values of an object with their keys.
  template <typename Value>
  class Iterator {
   public:
    using InObject = std::conditional_t<std::is_const_v<Value>, object_t::const_iterator, object_t::iterator>;

    Iterator(Value* element, InObject member, bool is_member)
        : element_(element), member_(member), is_member_(is_member) {}

    Value& operator*() const { return is_member_ ? member_->second : *element_; }
    Value* operator->() const { return &**this; }
    Value& value() const { return **this; }
    const std::string& key() const {
      if (!is_member_) throw type_error("JSON: the elements of an array have no keys");
      return member_->first;
    }
    Iterator& operator++() {
      if (is_member_) {
        ++member_;
      } else {
        ++element_;
      }
      return *this;
    }
    bool operator==(const Iterator& other) const { return element_ == other.element_ && member_ == other.member_; }
    bool operator!=(const Iterator& other) const { return !(*this == other); }

   private:
    Value* element_;
    InObject member_;
    bool is_member_;
  };
  using iterator = Iterator<Json>;
  using const_iterator = Iterator<const Json>;

  Json() = default;
  Json(std::nullptr_t) {}
  Json(const char* text) : type_(value_t::string), text_(text) {}
  Json(std::string text) : type_(value_t::string), text_(std::move(text)) {}
  /// A number, an array, an object, or a type whose namespace has to_json(Json&, const T&).
  template <typename T,
            std::enable_if_t<!std::is_same_v<std::decay_t<T>, Json> && !std::is_convertible_v<const T&, std::string>,
                             int> = 0>
  Json(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      type_ = value_t::boolean;
      unsigned_ = value ? 1 : 0;
    } else if constexpr (std::is_enum_v<T>) {
      *this = Json(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_integral_v<T>) {
      type_ = std::is_signed_v<T> ? value_t::number_integer : value_t::number_unsigned;
      unsigned_ = static_cast<uint64_t>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      type_ = value_t::number_float;
      float_ = static_cast<double>(value);
    } else if constexpr (IsVector<T>::value) {
      type_ = value_t::array;
      for (const auto& element : value) array_.push_back(Json(static_cast<const typename T::value_type&>(element)));
    } else if constexpr (IsTextMap<T>::value) {
      type_ = value_t::object;
      for (const auto& [key, element] : value) object_.emplace(key, Json(element));
    } else {
      to_json(*this, value);
    }
  }

  static Json object() { return of_type(value_t::object); }
  static Json array() { return of_type(value_t::array); }
  static Json parse(const std::string& text);
  std::string dump(int indent = -1) const;

  value_t type() const { return type_; }
  bool is_null() const { return type_ == value_t::null; }
  bool is_object() const { return type_ == value_t::object; }
  bool is_array() const { return type_ == value_t::array; }
  bool is_string() const { return type_ == value_t::string; }
  bool is_boolean() const { return type_ == value_t::boolean; }
  bool is_number_unsigned() const { return type_ == value_t::number_unsigned; }
  bool is_number_integer() const { return type_ == value_t::number_integer || is_number_unsigned(); }
  bool is_number_float() const { return type_ == value_t::number_float; }
  bool is_number() const { return is_number_integer() || is_number_float(); }

  size_t size() const { return is_object() ? object_.size() : is_array() ? array_.size() : is_null() ? 0 : 1; }
  bool empty() const { return size() == 0; }
  bool contains(const std::string& key) const { return object_.count(key) != 0; }
  size_t count(const std::string& key) const { return object_.count(key); }

  /// The member of that name, which is made where there is none; null becomes an object.
  Json& operator[](const std::string& key) {
    become(value_t::object);
    return object_[key];
  }
  Json& operator[](const char* key) { return (*this)[std::string(key)]; }
  /// The member of that name. Throws out_of_range where there is none.
  const Json& operator[](const std::string& key) const { return at(key); }
  const Json& operator[](const char* key) const { return at(key); }
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Json& operator[](T index) {
    return at(static_cast<size_t>(index));
  }
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  const Json& operator[](T index) const {
    return at(static_cast<size_t>(index));
  }
  const Json& at(const std::string& key) const {
    expect(value_t::object);
    const auto found = object_.find(key);
    if (found == object_.end()) throw out_of_range("JSON: the object has no member \"" + key + "\"");
    return found->second;
  }
  Json& at(const std::string& key) { return const_cast<Json&>(std::as_const(*this).at(key)); }
  const Json& at(size_t index) const {
    expect(value_t::array);
    if (index >= array_.size()) throw out_of_range("JSON: the array has no element " + std::to_string(index));
    return array_[index];
  }
  Json& at(size_t index) { return const_cast<Json&>(std::as_const(*this).at(index)); }
  template <typename T>
  T value(const std::string& key, const T& otherwise) const {
    return contains(key) ? at(key).get<T>() : otherwise;
  }
  std::string value(const std::string& key, const char* otherwise) const { return value(key, std::string(otherwise)); }

  void push_back(Json value) {
    become(value_t::array);
    array_.push_back(std::move(value));
  }

  iterator begin() { return {array_.data(), object_.begin(), is_object()}; }
  iterator end() { return {array_.data() + array_.size(), object_.end(), is_object()}; }
  const_iterator begin() const { return {array_.data(), object_.begin(), is_object()}; }
  const_iterator end() const { return {array_.data() + array_.size(), object_.end(), is_object()}; }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  iterator find(const std::string& key) {
    return is_object() ? iterator(past_elements(), object_.find(key), true) : end();
  }
  const_iterator find(const std::string& key) const {
    return is_object() ? const_iterator(past_elements(), object_.find(key), true) : end();
  }
  const object_t& items() const {
    expect(value_t::object);
    return object_;
  }

  /// Its value as a T. Throws type_error where it is none.
  template <typename T>
  T get() const {
    T value{};
    get_to(value);
    return value;
  }
  template <typename T>
  T& get_to(T& value) const {
    if constexpr (std::is_same_v<T, Json>) {
      value = *this;
    } else if constexpr (std::is_same_v<T, bool>) {
      expect(value_t::boolean);
      value = unsigned_ != 0;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(get<std::underlying_type_t<T>>());
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (type_ == value_t::number_integer) {
        value = static_cast<T>(static_cast<int64_t>(unsigned_));
      } else if (is_number_unsigned() || is_boolean()) {
        value = static_cast<T>(unsigned_);
      } else {
        expect(value_t::number_float);
        value = static_cast<T>(float_);
      }
    } else if constexpr (std::is_same_v<T, std::string>) {
      expect(value_t::string);
      value = text_;
    } else if constexpr (IsVector<T>::value) {
      expect(value_t::array);
      value.clear();
      for (const Json& element : array_) value.push_back(element.get<typename T::value_type>());
    } else if constexpr (IsTextMap<T>::value) {
      expect(value_t::object);
      value.clear();
      for (const auto& [key, element] : object_) value.emplace(key, element.template get<typename T::mapped_type>());
    } else {
      from_json(*this, value);
    }
    return value;
  }
  // Not as a char: assigning to a string would be ambiguous, which takes one, too.
  template <typename T,
            std::enable_if_t<(std::is_arithmetic_v<T> && !std::is_same_v<T, char>) || std::is_same_v<T, std::string> ||
                                 IsVector<T>::value || IsTextMap<T>::value,
                             int> = 0>
  operator T() const {
    return get<T>();
  }

  friend bool operator==(const Json& left, const Json& right) {
    if (left.is_number() && right.is_number() && left.type_ != right.type_) {
      return left.get<double>() == right.get<double>();
    }
    return left.type_ == right.type_ && left.unsigned_ == right.unsigned_ && left.float_ == right.float_ &&
           left.text_ == right.text_ && left.array_ == right.array_ && left.object_ == right.object_;
  }
  friend bool operator!=(const Json& left, const Json& right) { return !(left == right); }

 private:
  friend class JsonReader;
  friend class JsonWriter;

  static Json of_type(value_t type) {
    Json made;
    made.type_ = type;
    return made;
  }
  /// Where iterators of an object stand in the array: they compare that place, too.
  Json* past_elements() { return array_.data() + array_.size(); }
  const Json* past_elements() const { return array_.data() + array_.size(); }

  void become(value_t type) {
    if (is_null()) type_ = type;
    expect(type);
  }
  void expect(value_t type) const {
    static constexpr const char* kNames[] = {"null",      "an object", "an array", "a string",
                                             "a boolean", "a number",  "a number", "a number"};
    if (type_ == type) return;
    throw type_error(std::string("JSON: the value is ") + kNames[static_cast<int>(type_)] + ", not " +
                     kNames[static_cast<int>(type)]);
  }

  value_t type_ = value_t::null;
  uint64_t unsigned_ = 0;  ///< whole numbers, signed ones by their bits, and 1 for true
  double float_ = 0;
  std::string text_;
  array_t array_;
  object_t object_;
};

}  // namespace opkit::host
