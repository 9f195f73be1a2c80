#include "cloud/shown_question.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud {
namespace {

constexpr std::size_t kLongValue = 160;
constexpr std::size_t kLongLine = 2000;

// Compare names in lower case without punctuation. A name that contains one of these words has a
// secret value.
constexpr std::array<std::string_view, 8> kSecretNames = {
    "userdata", "secret", "token", "assertion", "password", "privatekey", "apikey", "credential"};
// Exceptions, by whole names: idempotency and page tokens are not secrets.
constexpr std::array<std::string_view, 2> kPlainNames = {"clienttoken", "nexttoken"};

bool is_secret_name(std::string_view name) {
  std::string plain;
  for (const char c : to_lower(name))
    if (c >= 'a' && c <= 'z') plain += c;
  if (plain == "key") return true;  // of a query: Google's key
  const auto has = [&](std::string_view word) { return plain.find(word) != std::string::npos; };
  return std::find(kPlainNames.begin(), kPlainNames.end(), plain) == kPlainNames.end() &&
         std::any_of(kSecretNames.begin(), kSecretNames.end(), has);
}

std::string shown_value(std::string_view name, std::string_view value) {
  if (is_secret_name(name) || value.size() > kLongValue)
    return fmt::format("({} bytes)", value.size());
  return std::string(value);
}

// Prints a form like "a=b&c=d" of a query or a body.
std::string shown_form(std::string_view form) {
  std::string text;
  for (const std::string& member : split(form, '&')) {
    const std::size_t mark = std::min(member.find('='), member.size());
    const std::string name = member.substr(0, mark);
    text += (text.empty() ? "" : "&") + name;
    if (mark < member.size()) text += "=" + shown_value(name, member.substr(mark + 1));
  }
  return text;
}

void cut_json(nlohmann::ordered_json& value) {
  if (!value.is_structured()) return;
  for (auto& [name, member] : value.items()) {
    // items() gives numbers as names for the elements of a list.
    if (member.is_string()) {
      member = shown_value(name, member.get_ref<const std::string&>());
    } else {
      cut_json(member);
    }
  }
}

std::string shown_body(const std::string& body) {
  auto read = codec::parse_ordered_json(body);
  if (read.is_structured()) {
    cut_json(read);
    return codec::print_json(read);
  }
  if (body.find('=') != std::string::npos) return shown_form(body);
  return fmt::format("({} bytes)", body.size());
}

}  // namespace

std::string shown_question(const Question& question) {
  const std::size_t mark = std::min(question.target.find('?'), question.target.size());
  std::string text =
      fmt::format("{} {}{}", question.method, question.base, question.target.substr(0, mark));
  if (mark < question.target.size()) text += "?" + shown_form(question.target.substr(mark + 1));
  if (!question.body.empty()) text += " " + shown_body(question.body);
  return printable(text, kLongLine);
}

}  // namespace lockstep::cloud
