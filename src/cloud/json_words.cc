#include "cloud/json_words.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <algorithm>
#include <cmath>

namespace lockstep::cloud {
namespace {

constexpr std::size_t kMostOfWord = 128;
// A price of 700 stands for "no price" in some catalogs. No machine costs as much.
constexpr double kNoPrice = 700;

}  // namespace

std::string json_text(std::string_view text) {
  return codec::print_json(nlohmann::json(text));
}

const nlohmann::json& json_member(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string word_member(const nlohmann::json& object, const char* name) {
  return printable(codec::text_member(object, name), kMostOfWord);
}

std::string id_member(const nlohmann::json& object, const char* name) {
  std::string id = codec::text_member(object, name);
  // "." and ".." would leave the folder of a path.
  const bool plain = id.size() <= kMostOfWord && id != "." && id != ".." &&
                     std::all_of(id.begin(), id.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                     });
  return plain ? id : std::string();
}

std::optional<Micros> dollars_member(const nlohmann::json& object, const char* name) {
  const nlohmann::json& amount = json_member(object, name);
  if (!amount.is_number()) return std::nullopt;
  const double dollars = amount.get<double>();
  if (!(dollars > 0) || dollars >= kNoPrice) return std::nullopt;
  return std::llround(dollars * static_cast<double>(kDollar));
}

int count_member(const nlohmann::json& object, const char* name, int most) {
  return static_cast<int>(std::clamp<std::int64_t>(codec::integer_member(object, name), 0, most));
}

}  // namespace lockstep::cloud
