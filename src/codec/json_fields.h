// Reads and writes structs as JSON objects. A function lists the members of a struct, and both
// directions walk that list. The name of each member therefore stands in a single place:
//
//   static void fields(codec::JsonFields& io, Disk& disk) {
//     io("path", disk.path);
//     io("kind", disk.kind, kKinds);          // an enum, by its words in the order of its values
//     io("percent", disk.percent, {0, 100});  // a bounded number
//     io("parts", disk.parts);                // a vector of another struct that has fields()
//     io.optional("label", disk.label);       // versions before 0.3 do not write it
//     io.require(disk.path.starts_with('/'), "path", "an absolute path");
//   }
//
//   nlohmann::ordered_json json = codec::write_fields(disk);
//   Status status = codec::read_fields(codec::parse_json(text), disk);
//
// A member is a text, a flag, an integer, a double, an enum with its words, a struct with fields(),
// or a std::vector, std::optional or std::map (from names) of these. The compiler looks for
// fields() in the namespace of the struct, but not in an anonymous namespace inside: use `static`
// to keep fields() in one file. While io.reads() is false, fields() must not change the struct,
// which may be const.
//
// Readers ignore members that the list does not name, so that a newer version may add members.
#pragma once

#include "base/error.h"
#include "codec/json.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::codec {

// The rules of a reader. A strict reader refuses an object if a member is missing or of another
// kind. A tolerant reader leaves such a member unchanged, moves a number out of bounds to the
// nearest bound, and leaves out elements of another kind.
struct JsonRules {
  bool strict = true;
  std::size_t text = std::numeric_limits<std::size_t>::max();  // most bytes of one text
  std::size_t list = std::numeric_limits<std::size_t>::max();  // most elements of a list or map
  // Not 0: an untrusted peer has written the texts. Each text becomes a printable line of at most
  // this many bytes (base/text.h).
  std::size_t printable = 0;
};
inline constexpr JsonRules kTolerantJson{.strict = false};

// Both bounds are allowed. A number above INT64_MAX is out of every range.
struct JsonRange {
  std::int64_t least;
  std::int64_t most;
};

template <std::integral Number>
inline constexpr JsonRange kWholeRange{
    std::numeric_limits<Number>::min(),
    std::cmp_less(std::numeric_limits<Number>::max(), std::numeric_limits<std::int64_t>::max())
        ? static_cast<std::int64_t>(std::numeric_limits<Number>::max())
        : std::numeric_limits<std::int64_t>::max()};

class JsonFields {
 public:
  using Words = std::span<const std::string_view>;

  // Writes into `into`, which must outlive the walk.
  explicit JsonFields(nlohmann::ordered_json& into) : into_(&into) {}
  explicit JsonFields(const JsonRules& rules) : rules_(rules) {}

  bool reads() const { return into_ == nullptr; }

  template <class Value>
  void operator()(const char* name, Value& value) {
    member(name, value);
  }
  template <std::integral Number>
  void operator()(const char* name, Number& number, JsonRange range) {
    member(name, number, range);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char* name, Enum& value, Words words) { member(name, value, words); }

  // Lists a member that even a tolerant reader requires. Members of a struct, and elements of a
  // list, are read by the rules of the walk.
  template <class Value, class... How>
  void needed(const char* name, Value& value, const How&... how) {
    if (!member(name, value, how...)) require(false, name, refused_);
  }
  // Lists a member that may be missing. A missing member leaves the value unchanged. A strict
  // reader still refuses a member of another kind. An empty std::optional is not written here,
  // while operator() writes null.
  template <class Value, class... How>
  void optional(const char* name, Value& value, const How&... how) {
    if (reads() ? find(name) != nullptr : is_set(value)) (*this)(name, value, how...);
  }
  // Refuses the object unless `fact` holds, even in a tolerant reader: "'name' is not `what`".
  void require(bool fact, std::string_view name, std::string_view what);

  // --- for read_fields() and write_fields()

  template <class Struct>
  requires requires(JsonFields& io, Struct& value) { fields(io, value); }
  bool read(Struct& value, const nlohmann::json& from) {
    if (!from.is_object()) return refuse("an object");
    const nlohmann::json* outer = std::exchange(from_, &from);
    fields(*this, value);
    from_ = outer;
    return true;
  }
  template <class Struct>
  requires requires(JsonFields& io, Struct& value) { fields(io, value); }
  void write(Struct& value, nlohmann::ordered_json& into) {
    into = nlohmann::ordered_json::object();
    nlohmann::ordered_json* outer = std::exchange(into_, &into);
    fields(*this, value);
    into_ = outer;
  }
  // Returns the first fault of a reader as Errc::corrupt: "'steps[2].state' is not a text".
  Status done() const;

 private:
  // Returns false if a reader has not taken the value.
  template <class Value, class... How>
  bool member(const char* name, Value& value, const How&... how) {
    if (!reads()) {
      write(value, (*into_)[name], how...);
      return true;
    }
    const nlohmann::json* from = find(name);
    const std::size_t outer = enter(name);
    // Read a missing member as null: both faults then have the same words.
    const bool taken = read(value, from == nullptr ? kNothing : *from, how...);
    path_.resize(outer);
    return taken;
  }

  // Each read() returns whether it has taken the value. If not, a strict reader has noted a fault.
  bool read(std::string& text, const nlohmann::json& from);
  bool read(bool& flag, const nlohmann::json& from);
  bool read(double& number, const nlohmann::json& from);
  bool read(std::vector<std::string>& texts, const nlohmann::json& from);
  template <std::integral Number>
  bool read(Number& number, const nlohmann::json& from, JsonRange range = kWholeRange<Number>) {
    const auto taken = integer(from, range);
    if (taken) number = static_cast<Number>(*taken);
    return taken.has_value();
  }
  template <class Enum>
  bool read(Enum& value, const nlohmann::json& from, Words words) {
    const auto index = index_of_word(from, words);
    if (index) value = static_cast<Enum>(*index);
    return index.has_value();
  }
  template <class Value>
  bool read(std::optional<Value>& value, const nlohmann::json& from) {
    if (from.is_null()) {
      if (&from != &kNothing || rules_.strict) value.reset();
      return true;
    }
    Value made{};
    if (!read(made, from)) return false;
    value = std::move(made);
    return true;
  }
  template <class Value>
  bool read(std::vector<Value>& list, const nlohmann::json& from) {
    if (!from.is_array() || from.size() > rules_.list) return refuse("a list");
    list.clear();
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t outer = enter(i);
      Value made{};
      if (read(made, from[i])) list.push_back(std::move(made));
      path_.resize(outer);
    }
    return true;
  }
  template <class Value>
  bool read(std::map<std::string, Value>& map, const nlohmann::json& from) {
    if (!from.is_object() || from.size() > rules_.list) return refuse("an object");
    map.clear();
    for (const auto& [name, each] : from.items()) {
      const std::size_t outer = enter(name);
      Value made{};
      if (read(made, each)) map.insert_or_assign(name, std::move(made));
      path_.resize(outer);
    }
    return true;
  }

  template <class Value>
  requires std::is_arithmetic_v<Value> || std::same_as<Value, std::string> ||
      std::same_as<Value, std::vector<std::string>>
  void write(const Value& value, nlohmann::ordered_json& into) { into = value; }
  template <std::integral Number>
  void write(Number number, nlohmann::ordered_json& into, JsonRange /*range*/) {
    into = number;
  }
  template <class Enum>
  void write(Enum value, nlohmann::ordered_json& into, Words words) {
    into = words[static_cast<std::size_t>(value)];
  }
  template <class Value>
  void write(std::optional<Value>& value, nlohmann::ordered_json& into) {
    if (value) write(*value, into);
  }
  template <class Value>
  void write(std::vector<Value>& list, nlohmann::ordered_json& into) {
    into = nlohmann::ordered_json::array();
    for (Value& each : list)
      write(each, into.emplace_back(nullptr));
  }
  template <class Value>
  void write(std::map<std::string, Value>& map, nlohmann::ordered_json& into) {
    into = nlohmann::ordered_json::object();
    for (auto& [name, each] : map)
      write(each, into[name]);
  }

  template <class Value>
  static bool is_set(const Value& /*value*/) {
    return true;
  }
  template <class Value>
  static bool is_set(const std::optional<Value>& value) {
    return value.has_value();
  }

  const nlohmann::json* find(const char* name) const;
  std::optional<std::int64_t> integer(const nlohmann::json& from, JsonRange range);
  std::optional<std::size_t> index_of_word(const nlohmann::json& from, Words words);
  // Returns a text by the rules. nullopt: not a text, or too long.
  std::optional<std::string> text_of(const nlohmann::json& from) const;
  // Lengthens path_ while a member or element is read. Returns the previous length.
  std::size_t enter(std::string_view name);
  std::size_t enter(std::size_t index);
  // Returns false. A strict reader notes the fault, if it is the first.
  bool refuse(std::string_view what);

  static const nlohmann::json kNothing;

  nlohmann::ordered_json* into_ = nullptr;  // the object being written; nullptr: reads
  const nlohmann::json* from_ = nullptr;    // the object being read
  JsonRules rules_ = {};
  std::string path_ = {};     // path of the member being read
  std::string refused_ = {};  // the wanted kind of the last refused value: "a text"
  std::string fault_ = {};    // empty: none
};

// Writes members in the order of the list. (A conversion to nlohmann::json sorts them by name.)
template <class Struct>
nlohmann::ordered_json write_fields(const Struct& value) {
  nlohmann::ordered_json into;
  // fields() serves both directions, and only reads the struct here.
  JsonFields(into).write(const_cast<Struct&>(value), into);
  return into;
}

// Reads `value` from an object. Errors: Errc::corrupt, which names the first member at fault. After
// an error `value` may be half read. A tolerant reader fails only if `from` is not an object, or if
// fields() insists on a member by needed() or require().
template <class Struct>
Status read_fields(const nlohmann::json& from, Struct& value, const JsonRules& rules = {}) {
  JsonFields reader(rules);
  if (!reader.read(value, from)) return fail(Errc::corrupt, "it is no object");
  return reader.done();
}

}  // namespace lockstep::codec
