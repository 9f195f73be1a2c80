#include "looks/threads_report.h"

#include "base/number_ranges.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostRanks = 65'536;

void append(std::vector<int>& to, const std::vector<int>& ranks) {
  to.insert(to.end(), ranks.begin(), ranks.end());
}

std::string who(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranges_text(ranks));
}

}  // namespace

std::vector<std::string> deaf_nodes(const std::vector<Answer>& answers, const Question& question) {
  std::vector<std::string> nodes;
  for (const Answer& answer : answers)
    if ((question.threads && !answer.threads) || (question.native && !answer.native))
      nodes.push_back(answer.node);
  return nodes;
}

std::string threads_report(const std::vector<Answer>& answers) {
  std::vector<RankText> ranks;
  std::vector<int> left_out;
  std::string refusals;
  for (const Answer& answer : answers) {
    ranks.insert(ranks.end(), answer.ranks.begin(), answer.ranks.end());
    append(left_out, parse_ranges(answer.left_out, kMostRanks).value_or(std::vector<int>()));
    refusals += refusal_line(answer);
  }
  std::string text;
  for (const RankText& rank : fold_ranks(std::move(ranks))) {
    const std::string block = threads_text(rank);
    if (text.size() + block.size() > kMostReport) {
      append(left_out, ranks_of(rank));
      continue;
    }
    if (!text.empty()) text += '\n';
    text += block;
  }
  if (!left_out.empty())
    text += fmt::format("left out: {}; --rank R shows one rank\n", who(std::move(left_out)));
  return text + refusals;
}

std::string threads_json(const std::vector<Answer>& answers) {
  std::vector<std::string> texts;
  texts.reserve(answers.size());
  for (const Answer& answer : answers)
    texts.push_back(answer_json(answer));
  return R"({"looks":[)" + join(texts, ",") + "]}";
}

}  // namespace lockstep::looks
