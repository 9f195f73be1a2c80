#include "codec/json.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace lockstep::codec {
namespace {

// Builds the value from the inside out: makes a container at its end, when the size is known.
// nlohmann's own builder takes quadratic time. It appends to containers inside containers.
// nlohmann's ordered object searches all members for each new member, and copies all members when
// it grows.
template <class Value>
class Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  Value take() { return std::move(values_.front()); }

  // nlohmann's parser calls the following functions. Returning false ends the parse.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(typename Value::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t) { return open(); }
  bool key(std::string& name) {
    keys_.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    Value object(Value::value_t::object);
    fill(object.template get_ref<typename Value::object_t&>());
    return close(std::move(object));
  }
  bool end_array() {
    Value array(Value::value_t::array);
    array.template get_ref<typename Value::array_t&>().assign(
        std::move_iterator(values_.begin() + open_.back().first_value),
        std::move_iterator(values_.end()));
    return close(std::move(array));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }

 private:
  struct Open {
    std::ptrdiff_t first_value;  // index in values_
    std::ptrdiff_t first_key;    // index in keys_
    std::size_t members = 0;
  };

  bool count() {
    return ++count_ <= limits_.values &&
           (open_.empty() || ++open_.back().members <= limits_.members);
  }
  template <class T>
  bool add(T&& value) {
    if (!count()) return false;
    values_.emplace_back(std::forward<T>(value));
    return true;
  }
  bool open() {
    if (open_.size() >= limits_.depth || !count()) return false;
    open_.push_back({std::ssize(values_), std::ssize(keys_)});
    return true;
  }
  bool close(Value made) {
    values_.erase(values_.begin() + open_.back().first_value, values_.end());
    keys_.erase(keys_.begin() + open_.back().first_key, keys_.end());
    open_.pop_back();
    values_.push_back(std::move(made));
    return true;
  }

  std::string& key_at(std::size_t i) {
    return keys_[static_cast<std::size_t>(open_.back().first_key) + i];
  }
  Value& value_at(std::size_t i) {
    return values_[static_cast<std::size_t>(open_.back().first_value) + i];
  }

  void fill(nlohmann::json::object_t& object) {
    for (std::size_t i = 0; i < open_.back().members; ++i)
      object.insert_or_assign(std::move(key_at(i)), std::move(value_at(i)));
  }
  // Fills an ordered object. A repeated name keeps the first place and gets the last value.
  void fill(nlohmann::ordered_json::object_t& object) {
    const std::size_t members = open_.back().members;
    std::vector<std::size_t> by_name(members);
    for (std::size_t i = 0; i < members; ++i)
      by_name[i] = i;
    // Sort indices to find repeated names in n log n steps. A stable sort keeps repeats in order.
    std::stable_sort(by_name.begin(), by_name.end(),
                     [this](std::size_t a, std::size_t b) { return key_at(a) < key_at(b); });
    std::vector<bool> again(members);
    for (std::size_t i = 1, first = 0; i < members; ++i) {
      if (key_at(by_name[i]) != key_at(by_name[first])) {
        first = i;
        continue;
      }
      value_at(by_name[first]) = std::move(value_at(by_name[i]));
      again[by_name[i]] = true;
    }
    object.reserve(members);  // growth would copy all members
    for (std::size_t i = 0; i < members; ++i)
      if (!again[i]) object.emplace_back(std::move(key_at(i)), std::move(value_at(i)));
  }

  const JsonLimits& limits_;
  std::vector<Value> values_;      // values of open containers, outermost first
  std::vector<std::string> keys_;  // names in open objects
  std::vector<Open> open_;
  std::size_t count_ = 0;
};

template <class Value>
Value parse(std::string_view text, const JsonLimits& limits) {
  Builder<Value> builder(limits);
  if (text.size() > limits.bytes || !Value::sax_parse(text, &builder))
    return Value(Value::value_t::discarded);
  return builder.take();
}

template <class Value>
std::string print(const Value& value, JsonText text, int indent) {
  // replace: bytes that are not UTF-8 must not throw.
  return value.dump(indent, ' ', text == JsonText::ascii, Value::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const JsonLimits& limits) {
  return parse<nlohmann::json>(text, limits);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonLimits& limits) {
  return parse<nlohmann::ordered_json>(text, limits);
}

std::string print_json(const nlohmann::json& value, JsonText text, int indent) {
  return print(value, text, indent);
}

std::string print_json(const nlohmann::ordered_json& value, JsonText text, int indent) {
  return print(value, text, indent);
}

}  // namespace lockstep::codec
