#include "setup/requirements.h"

#include "base/text.h"
#include "setup/spec.h"

#include <array>
#include <optional>
#include <utility>

namespace lockstep::setup {
namespace {

using Words = std::vector<std::string>;
using Kind = Reference::Kind;

struct Option {
  std::string_view name;
  Kind kind;
};
constexpr std::array<Option, 8> kOptions = {{{"-r", Kind::requirements},
                                             {"--requirement", Kind::requirements},
                                             {"-c", Kind::requirements},
                                             {"--constraint", Kind::requirements},
                                             {"-e", Kind::content},
                                             {"--editable", Kind::content},
                                             {"-f", Kind::content},
                                             {"--find-links", Kind::content}}};

// Splits "-rX", "-r X" or "--requirement=X" into the option and its value, if the value is in the
// same word.
std::optional<std::pair<Kind, std::optional<std::string>>> option_in(std::string_view word) {
  for (const Option& option : kOptions) {
    if (!word.starts_with(option.name)) continue;
    const std::string_view rest = word.substr(option.name.size());
    if (rest.empty()) return {{option.kind, std::nullopt}};
    if (rest.starts_with('=')) return {{option.kind, std::string(rest.substr(1))}};
    if (option.name.size() == 2) return {{option.kind, std::string(rest)}};
  }
  return std::nullopt;
}

// Returns the path in a value, without extras ("[dev]") and without "file:". nullopt: a URL.
std::optional<std::string> path_in(std::string value) {
  const std::size_t bracket = value.rfind('[');
  if (value.ends_with(']') && bracket != std::string::npos) value.resize(bracket);
  if (value.starts_with("file://")) value.erase(0, 7);
  if (value.starts_with("file:")) value.erase(0, 5);
  if (value.empty() || value.find("://") != std::string::npos || value.find('\0') < value.size())
    return std::nullopt;
  return value;
}

// Follows pip's own rule for telling a path from a package's name.
bool looks_like_path(std::string_view word) {
  if (word.starts_with('-')) return false;
  if (word.starts_with('.') || word.find('/') != std::string_view::npos) return true;
  for (const std::string_view archive : {".whl", ".zip", ".tgz", ".gz", ".bz2", ".xz"})
    if (word.ends_with(archive)) return true;
  return word.starts_with("file:");
}

std::vector<Reference> references_in_words(const Words& words) {
  std::vector<Reference> found;
  const auto add = [&](Kind kind, const std::string& value) {
    if (auto path = path_in(value)) found.push_back({kind, std::move(*path)});
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    // "-r" and its file may be two words.
    const auto option = option_in(words[i]);
    if (option && option->second) {
      add(option->first, *option->second);
    } else if (option && i + 1 < words.size()) {
      add(option->first, words[++i]);
    } else if (!option && looks_like_path(words[i])) {
      add(Kind::content, words[i]);
    }
  }
  return found;
}

// A comment begins with '#' at the start of a line or behind white space.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1))
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  return line;
}

}  // namespace

std::vector<Reference> references_in_arguments(const std::vector<std::string>& args) {
  return references_in_words(args);
}

std::vector<Reference> references_in_file(std::string_view text) {
  std::string joined(text);
  // A backslash joins lines before comments are removed, as in pip.
  replace_all(joined, "\r\n", "\n");
  replace_all(joined, "\\\n", "");
  std::vector<Reference> found;
  for (const std::string& raw : split(joined, '\n')) {
    std::string_view line = strip(without_comment(raw));
    if (line.starts_with("- ")) line = strip(line.substr(2));
    auto words = split_words(line);
    // pip accepts some lines that a shell would not, such as an open quote.
    const Words plain = words ? std::move(*words) : split(line, ' ');
    for (Reference& each : references_in_words(plain))
      found.push_back(std::move(each));
  }
  return found;
}

}  // namespace lockstep::setup
