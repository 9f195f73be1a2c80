#include "cli/own_words.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::cli {

Result<std::vector<std::string>> read_own_words(const Args& words, std::string& folder,
                                                std::initializer_list<OwnWord> known) {
  std::size_t at = 0;
  // No flag or value can be the last word, because "--" and a command must follow.
  for (; at + 1 < words.size() && words[at] != "--"; ++at) {
    if (words[at] == "--folder") {
      folder = words[++at];
      continue;
    }
    const auto* const word = std::find_if(
        known.begin(), known.end(), [&](const OwnWord& each) { return words[at] == each.name; });
    if (word == known.end()) break;
    if (bool* const* flag = std::get_if<bool*>(&word->to))
      **flag = true;
    else
      *std::get<std::string*>(word->to) = words[++at];
  }
  if (at + 1 >= words.size() || words[at] != "--" || !folder.starts_with('/'))
    return fail(Errc::invalid_input,
                "this is an internal command, started by the scripts of lockstep submit");
  return std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
}

}  // namespace lockstep::cli
