#include "looks/question.h"

#include "base/text.h"

#include <vector>

namespace lockstep::looks {
namespace {

constexpr std::string_view kRank = "rank=";
constexpr std::string_view kThreads = "threads";
constexpr std::string_view kNative = "native";
constexpr std::int64_t kMostRank = 1 << 24;

}  // namespace

std::string print_question(const Question& question) {
  std::vector<std::string> words;
  if (question.rank) words.push_back(std::string(kRank) + std::to_string(*question.rank));
  if (question.threads) words.emplace_back(kThreads);
  if (question.native) words.emplace_back(kNative);
  return join(words, "&");
}

Question read_question(std::string_view text) {
  Question question;
  for (const std::string& word : split(text.substr(0, 256), '&')) {
    if (word == kThreads) question.threads = true;
    if (word == kNative) question.native = true;
    if (!word.starts_with(kRank)) continue;
    const auto rank = parse_int(word.substr(kRank.size()));
    if (rank && *rank >= 0 && *rank <= kMostRank) question.rank = static_cast<int>(*rank);
  }
  return question;
}

}  // namespace lockstep::looks
