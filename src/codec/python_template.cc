// Substitutes names the way Python does.
#include "codec/python_template.h"

namespace lockstep::codec {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool in_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

// Returns the identifier at the start of the text, or "".
std::string_view leading_name(std::string_view text) {
  if (text.empty() || !starts_name(text[0])) return {};
  std::size_t size = 1;
  while (size < text.size() && in_name(text[size]))
    ++size;
  return text.substr(0, size);
}

// Substitutes. Appends names missing in `names` to `unknown`, unless that is nullptr.
std::string fill(std::string_view text, const TemplateNames& names,
                 std::vector<std::string>* unknown) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return out;
    text.remove_prefix(dollar);
    if (text.starts_with("$$")) {
      out += '$';
      text.remove_prefix(2);
      continue;
    }
    const bool braced = text.starts_with("${");
    const std::string_view name = leading_name(text.substr(braced ? 2 : 1));
    // With braces the name needs a closing brace. `whole` tells whether the brace is there.
    const std::size_t size = name.size() + (braced ? 3 : 1);
    const bool whole = !name.empty() && (!braced || (size <= text.size() && text[size - 1] == '}'));
    const auto found = whole ? names.find(name) : names.end();
    if (found != names.end()) {
      out += found->second;
      text.remove_prefix(size);
    } else {
      if (whole && unknown != nullptr) unknown->emplace_back(name);
      // Leave an unknown or broken name unchanged, as safe_substitute() does.
      out += '$';
      text.remove_prefix(1);
    }
  }
}

}  // namespace

std::string substitute(std::string_view text, const TemplateNames& names) {
  return fill(text, names, nullptr);
}

std::vector<std::string> unknown_names(std::string_view text, const TemplateNames& names) {
  std::vector<std::string> unknown;
  fill(text, names, &unknown);
  return unknown;
}

}  // namespace lockstep::codec
