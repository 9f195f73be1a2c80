#include "base/shell_words.h"

#include <utility>

namespace lockstep {
namespace {

constexpr std::string_view kShellSpace = " \t\r\n\v\f";

// Takes a shell word at `at` and moves `at` behind the word. nullopt: an open quote.
std::optional<std::string> take_word(std::string_view text, std::size_t& at) {
  std::string word;
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool more = at + 1 < text.size();
    if (quote == 0 && kShellSpace.find(c) != std::string_view::npos) break;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && more &&
               (quote == 0 ||
                (quote == '"' && std::string_view("\"\\$`").find(text[at + 1]) < 4))) {
      word += text[++at];
    } else if (c == '\\' && !more && quote == 0) {
      return std::nullopt;
    } else {
      word += c;
    }
  }
  if (quote != 0) return std::nullopt;
  return word;
}

}  // namespace

std::optional<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kShellSpace, at)) != std::string_view::npos) {
    auto word = take_word(text, at);
    if (!word) return std::nullopt;
    words.push_back(std::move(*word));
  }
  return words;
}

}  // namespace lockstep
