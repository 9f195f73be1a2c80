#include "looks/answer.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_fields.h"
#include "looks/hang_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostText = 1000;
constexpr std::size_t kMostAnswer = 4UL << 20;

}  // namespace

static void fields(codec::JsonFields& io, GroupCollective& group) {
  io("rank", group.rank, {0, 1 << 24});
  io("words", group.words);
  io("missing", group.missing);
  io("inside", group.inside);
}

static void fields(codec::JsonFields& io, Answer& answer) {
  io("node", answer.node);
  io("command", answer.command);
  io("attempt", answer.attempt, {0, 1 << 30});
  io("world", answer.world, {0, 1 << 24});
  io("state", answer.state);
  io("words", answer.words);
  io("straggler", answer.straggler);
  io("goodput", answer.goodput);
  io("refusal", answer.refusal);
  io("collectives", answer.collectives);
  io("groups", answer.groups);
  io("gpus", answer.gpus);
  io("ranks", answer.ranks);
  io("threads", answer.threads);
  io("native", answer.native);
  io("ranks_left_out", answer.left_out);
  io("whole", answer.whole);
}

std::vector<GroupCollective> group_collectives(const Fold& fold, const Evidence& evidence) {
  std::vector<GroupCollective> all;
  for (const Group& group : fold.groups) {
    // The ranks of a group do the same, so the first one stands for all.
    const std::vector<int> ranks = ranks_of(group);
    const auto known =
        ranks.empty() ? evidence.collective.end() : evidence.collective.find(ranks.front());
    if (known == evidence.collective.end()) continue;
    const auto& missing = evidence.never_entered;
    all.push_back(
        {.rank = known->first,
         .words = known->second,
         .missing = std::find(missing.begin(), missing.end(), known->first) != missing.end(),
         .inside = waits(group, evidence)});
  }
  return all;
}

std::string answer_json(const Answer& answer) {
  nlohmann::ordered_json json = codec::write_fields(answer);
  json["fold"] = codec::parse_ordered_json(fold_json(answer.fold));
  return codec::print_json(json);
}

Result<Answer> read_answer(std::string_view text) {
  const auto json = codec::parse_json(text, {.bytes = kMostAnswer});
  Answer answer;
  // Not strict: a running job keeps its version of lockstep when the binary is replaced.
  LOCKSTEP_TRY(codec::read_fields(
      json, answer,
      {.strict = false, .text = kMostText, .list = kMostThreadTexts, .printable = kMostText}));
  if (json.is_object() && json.contains("fold")) {
    LOCKSTEP_TRY_ASSIGN(answer.fold, read_fold(codec::print_json(json["fold"])));
  }
  return answer;
}

std::string refusal_line(const Answer& answer) {
  if (answer.refusal.empty()) return {};
  return fmt::format("{}: stacks are not readable: {}\n", answer.node, answer.refusal);
}

bool is_known(const std::vector<Answer>& answers, const Answer& answer) {
  const auto all_ranks = [](const Answer& one) {
    std::vector<int> ranks;
    for (const Group& group : one.fold.groups)
      for (const int rank : ranks_of(group))
        ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  };
  return std::any_of(answers.begin(), answers.end(), [&](const Answer& one) {
    return one.node == answer.node && one.ranks.empty() == answer.ranks.empty() &&
           all_ranks(one) == all_ranks(answer);
  });
}

// The nodes of a job spend their time alike, so that of the first node stands for all.
static std::string goodput_line(const std::vector<Answer>& answers) {
  const auto at = std::find_if(answers.begin(), answers.end(),
                               [](const Answer& one) { return !one.goodput.empty(); });
  if (at == answers.end()) return {};
  return answers.size() == 1 ? at->goodput + "\n" : fmt::format("{}: {}\n", at->node, at->goodput);
}

// Puts together the evidence of all answers about the groups of a fold.
static Evidence evidence_in(const std::vector<Answer>& answers, const Fold& fold) {
  std::map<int, GroupCollective> told;
  for (const Answer& answer : answers)
    for (const GroupCollective& group : answer.groups)
      told.try_emplace(group.rank, group);
  Evidence evidence;
  for (const Group& group : fold.groups)
    for (const int rank : ranks_of(group)) {
      const auto known = told.find(rank);
      if (known == told.end()) continue;
      evidence.collective.emplace(rank, known->second.words);
      if (known->second.missing) evidence.never_entered.push_back(rank);
      if (known->second.inside)
        for (const int each : ranks_of(group))
          evidence.inside.try_emplace(each);
    }
  return evidence;
}

// Nodes that are judged together tell of the same rank, in the same words.
static std::string straggler_lines(const std::vector<Answer>& answers) {
  std::set<std::string_view> all;
  for (const Answer& answer : answers)
    if (!answer.straggler.empty()) all.insert(answer.straggler);
  std::string text;
  for (const std::string_view words : all)
    text += fmt::format("straggler: {}\n", words);
  return text;
}

std::string answers_text(const std::vector<Answer>& answers) {
  if (answers.empty()) return {};
  std::vector<Fold> folds;
  std::string text;
  // A verdict about the whole job replaces what each node says about itself.
  const auto whole =
      std::find_if(answers.begin(), answers.end(), [](const Answer& one) { return one.whole; });
  if (whole != answers.end()) text = whole->words + "\n";
  for (const Answer& answer : answers) {
    folds.push_back(answer.fold);
    if (whole != answers.end()) continue;
    text += answers.size() == 1 ? fmt::format("{}\n", answer.words)
                                : fmt::format("{}: {}\n", answer.node, answer.words);
  }
  const Fold all = merge(folds);
  text += straggler_lines(answers);
  text += fold_words(all, evidence_in(answers, all));
  if (!text.ends_with('\n')) text += '\n';
  for (const Answer& answer : answers)
    for (const std::string& sentence : answer.collectives)
      text += fmt::format("  {}\n", sentence);
  for (const Answer& answer : answers)
    for (const std::string& line : answer.gpus)
      text += fmt::format("  {}\n", line);
  text += goodput_line(answers);
  for (const Answer& answer : answers) {
    for (const RankText& rank : answer.ranks)
      text += "\n" + threads_text(rank);
    text += refusal_line(answer);
  }
  return text;
}

}  // namespace lockstep::looks
