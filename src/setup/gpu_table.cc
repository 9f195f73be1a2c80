#include "setup/gpu_table.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::setup {
namespace {

// A name is split into words of letters and digits. The first row matches whose words are all in
// the name, or stand in it as one word ("rtx3090"). '#' stands for any digit. Letters may follow a
// digit ("2080ti"). More specific rows come first.
struct Row {
  std::string_view words;
  int capability;
};
constexpr std::array kRows = {
    Row{"RTX PRO", 120},    Row{"GB10", 121},     Row{"Thor", 110},       Row{"B300", 103},
    Row{"GB300", 103},      Row{"B100", 100},     Row{"B200", 100},       Row{"GB200", 100},
    Row{"H100", 90},        Row{"H200", 90},      Row{"H800", 90},        Row{"H20", 90},
    Row{"GH200", 90},       Row{"Ada", 89},       Row{"RTX #000Ada", 89}, Row{"#000Ada", 89},
    Row{"Quadro RTX", 75},  Row{"RTX #000", 75},  Row{"RTX 50##", 120},   Row{"RTX 40##", 89},
    Row{"L4", 89},          Row{"L20", 89},       Row{"L40", 89},         Row{"Orin", 87},
    Row{"RTX 30##", 86},    Row{"RTX A####", 86}, Row{"A#000", 86},       Row{"A2", 86},
    Row{"A10", 86},         Row{"A16", 86},       Row{"A40", 86},         Row{"A100", 80},
    Row{"A800", 80},        Row{"A30", 80},       Row{"T4", 75},          Row{"TITAN RTX", 75},
    Row{"RTX 20##", 75},    Row{"GTX 16##", 75},  Row{"Xavier", 72},      Row{"V100", 70},
    Row{"TITAN V", 70},     Row{"GV100", 70},     Row{"TX2", 62},         Row{"P100", 60},
    Row{"GP100", 60},       Row{"P4", 61},        Row{"P40", 61},         Row{"GTX 10##", 61},
    Row{"GTX TITAN X", 52}, Row{"TITAN X", 61},   Row{"TITAN Xp", 61},    Row{"Quadro P####", 61},
    Row{"Quadro P###", 61}, Row{"50#0", 120},     Row{"40#0", 89},        Row{"30#0", 86},
    Row{"20#0", 75},        Row{"10#0", 61},
};

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (is_letter_or_digit(c) || c == '#') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Compares without regard to case.
bool is_word(std::string_view pattern, std::string_view word) {
  if (pattern.size() > word.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == '#' ? !is_digit(word[i])
                          : to_lower(pattern.substr(i, 1)) != to_lower(word.substr(i, 1)))
      return false;
  const std::string_view rest = word.substr(pattern.size());
  const char last = pattern.back();
  return rest.empty() ||
         ((last == '#' || is_digit(last)) && std::none_of(rest.begin(), rest.end(), is_digit));
}

bool is_there(std::string_view pattern, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_word(pattern, word); });
}

}  // namespace

int capability_of(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  for (const Row& row : kRows) {
    const std::vector<std::string> wanted = words_of(row.words);
    const bool all = std::all_of(wanted.begin(), wanted.end(),
                                 [&](const std::string& each) { return is_there(each, words); });
    if (all || is_there(join(wanted, ""), words)) return row.capability;
  }
  return 0;
}

}  // namespace lockstep::setup
