#include "codec/json_fields.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::codec {

const nlohmann::json JsonFields::kNothing;

void JsonFields::require(bool fact, std::string_view name, std::string_view what) {
  if (fact || !reads() || !fault_.empty()) return;
  const std::size_t outer = enter(name);
  fault_ = fmt::format("'{}' is not {}", path_, what);
  path_.resize(outer);
}

Status JsonFields::done() const {
  if (fault_.empty()) return {};
  return fail(Errc::corrupt, fault_);
}

bool JsonFields::read(std::string& text, const nlohmann::json& from) {
  auto read = text_of(from);
  if (!read)
    return refuse(from.is_string() ? fmt::format("at most {} bytes", rules_.text) : "a text");
  text = *std::move(read);
  return true;
}

bool JsonFields::read(bool& flag, const nlohmann::json& from) {
  if (!from.is_boolean()) return refuse("true or false");
  flag = from.get<bool>();
  return true;
}

bool JsonFields::read(double& number, const nlohmann::json& from) {
  if (!from.is_number()) return refuse("a number");
  number = from.get<double>();
  return true;
}

bool JsonFields::read(std::vector<std::string>& texts, const nlohmann::json& from) {
  if (!from.is_array() || from.size() > rules_.list) return refuse("a list");
  texts.clear();
  for (const nlohmann::json& each : from) {
    if (auto text = text_of(each))
      texts.push_back(*std::move(text));
    else
      refuse("a list of texts");
  }
  return true;
}

std::optional<std::string> JsonFields::text_of(const nlohmann::json& from) const {
  if (!from.is_string()) return std::nullopt;
  const auto& text = from.get_ref<const std::string&>();
  if (text.size() > rules_.text) return std::nullopt;
  return rules_.printable > 0 ? printable(text, rules_.printable) : text;
}

const nlohmann::json* JsonFields::find(const char* name) const {
  const auto at = from_->find(name);
  return at == from_->end() ? nullptr : &*at;
}

std::optional<std::int64_t> JsonFields::integer(const nlohmann::json& from, JsonRange range) {
  if (!from.is_number_integer()) {
    refuse("a number");
    return std::nullopt;
  }
  // nlohmann stores numbers above INT64_MAX as unsigned.
  const bool huge =
      from.is_number_unsigned() && !std::in_range<std::int64_t>(from.get<std::uint64_t>());
  const std::int64_t number =
      huge ? std::numeric_limits<std::int64_t>::max() : from.get<std::int64_t>();
  if (!huge && number >= range.least && number <= range.most) return number;
  if (rules_.strict) {
    refuse(fmt::format("a number from {} to {}", range.least, range.most));
    return std::nullopt;
  }
  return std::clamp(number, range.least, range.most);
}

std::optional<std::size_t> JsonFields::index_of_word(const nlohmann::json& from, Words words) {
  std::string word;
  if (!read(word, from)) return std::nullopt;
  const auto at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  refuse("a known word");
  return std::nullopt;
}

std::size_t JsonFields::enter(std::string_view name) {
  const std::size_t outer = path_.size();
  if (!path_.empty()) path_ += '.';
  path_ += name;
  return outer;
}

std::size_t JsonFields::enter(std::size_t index) {
  const std::size_t outer = path_.size();
  path_ += fmt::format("[{}]", index);
  return outer;
}

bool JsonFields::refuse(std::string_view what) {
  refused_ = what;
  // Keep the first fault only: later faults often follow from it.
  if (rules_.strict && fault_.empty()) fault_ = fmt::format("'{}' is not {}", path_, what);
  return false;
}

}  // namespace lockstep::codec
