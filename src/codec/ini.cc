// Parses settings files leniently in form and strictly in bytes.
#include "codec/ini.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::codec {
namespace {

// Cuts a comment off a value: '#' or ';' after white space and outside quotes.
std::string_view before_comment(std::string_view value) {
  char quote = 0;
  for (std::size_t at = 0; at < value.size(); ++at) {
    const char c = value[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    const bool mark = c == '#' || c == ';';
    if (mark && at > 0 && (value[at - 1] == ' ' || value[at - 1] == '\t'))
      return value.substr(0, at);
  }
  return value;
}

std::string section_name(std::string_view text) {
  std::string name;
  for (const char c : strip(text)) {
    // [profile "my work"] and [profile my work] are the same section.
    if (c == '"' || c == '\'') continue;
    const bool space = c == ' ' || c == '\t';
    if (!space) name += c;
    if (space && !name.ends_with(' ')) name += ' ';
  }
  return name;
}

// Sorts lines into sections.
class IniReader {
 public:
  IniReader(std::string_view what, const IniLimits& limits) : what_(what), limits_(limits) {
    ini_.sections.emplace_back();
  }

  Status take(std::string_view line) {
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (std::any_of(line.begin(), line.end(),
                    [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7F; }))
      return refuse("has control characters in it");
    const bool indented = line.starts_with(' ') || line.starts_with('\t');
    const std::string_view text = strip(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') return {};
    // Skip an indented line, which continues the member above: a nested setting of AWS, or a long
    // value.
    if (indented && !ini_.sections[section_].members.empty()) return {};
    if (++members_ > limits_.members) return refuse("is one too many");
    return text.front() == '[' ? take_section(text) : take_member(text);
  }

  Ini done() { return std::move(ini_); }

 private:
  Status take_section(std::string_view text) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return refuse("has a '[' without a ']'");
    std::string name = section_name(text.substr(1, end - 1));
    const auto found = std::find_if(ini_.sections.begin(), ini_.sections.end(),
                                    [&](const IniSection& each) { return each.name == name; });
    // If a section appears twice, both parts form a single section.
    section_ = static_cast<std::size_t>(found - ini_.sections.begin());
    if (found == ini_.sections.end()) ini_.sections.push_back({std::move(name), {}});
    return {};
  }

  Status take_member(std::string_view text) {
    // Python's configparser, which AWS's tools use, accepts both marks.
    const std::size_t mark = text.find_first_of("=:");
    if (mark == std::string_view::npos || mark == 0)
      return refuse("is neither [section] nor key = value");
    ini_.sections[section_].members.emplace_back(
        to_lower(strip(text.substr(0, mark))),
        std::string(strip(before_comment(text.substr(mark + 1)))));
    return {};
  }

  Failure refuse(std::string_view why) const {
    return fail(Errc::invalid_input, fmt::format("{}: line {} {}", what_, line_, why));
  }

  std::string_view what_;
  IniLimits limits_;
  Ini ini_;
  std::size_t section_ = 0;  // the section of the next member
  std::size_t members_ = 0;
  std::size_t line_ = 0;
};

}  // namespace

std::string_view IniSection::value(std::string_view key) const {
  // Search from the end: the last member with this name counts.
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const auto& member) { return member.first == key; });
  return found == members.rend() ? std::string_view{} : std::string_view(found->second);
}

const IniSection* Ini::section(std::string_view name) const {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [&](const IniSection& each) { return each.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

Result<Ini> parse_ini(std::string_view text, std::string_view what, const IniLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Errc::invalid_input,
                fmt::format("{}: larger than {} KiB", what, limits.bytes >> 10));
  }
  // Skip a byte order mark, which editors on Windows put in front.
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  IniReader reader(what, limits);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const bool whole = text[end] == '\n';
    LOCKSTEP_TRY(reader.take(text.substr(0, whole ? end : end + 1)));
    text.remove_prefix(end + 1);
  }
  return reader.done();
}

std::string ini_unquoted(std::string_view value) {
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  return std::string(quoted ? value.substr(1, value.size() - 2) : value);
}

}  // namespace lockstep::codec
