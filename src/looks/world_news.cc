#include "looks/world_news.h"

#include "base/number_ranges.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/json_fields.h"
#include "looks/straggler_watch.h"

#include <algorithm>
#include <utility>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostNewsBytes = 256U << 10;
constexpr std::size_t kMostWords = 1000;
constexpr std::size_t kMostAlarm = 8192;
constexpr std::size_t kMostListed = 4096;
constexpr std::size_t kMostVerdictRanges = 512;
constexpr std::size_t kMostVerdictRanks = 1U << 17;
constexpr std::size_t kMostName = 128;
constexpr int kMostRank = 1 << 24;
constexpr std::int64_t kMostNumber = std::int64_t{1} << 52;

// An alarm has several lines.
std::string printable_lines(const std::string& text) {
  std::string lines;
  for (const std::string& line : split(text.substr(0, kMostAlarm), '\n'))
    lines += (lines.empty() ? "" : "\n") + printable(line, kMostWords);
  return lines;
}

}  // namespace

// Numbers by rank: names of members in JSON are texts.
using RankNumbers = std::map<std::string, std::int64_t>;

struct NodeNewsValue {
  std::int64_t number = 0;
  std::optional<RankNumbers> pids = {};
  std::optional<RankNumbers> gpus = {};
  std::optional<bool> lacks = {};
  std::optional<std::string> recorders = {};
  std::optional<std::string> waits = {};
  std::optional<int> timed_out = {};
};

struct SuspectValue {
  std::string ranks = {};  // "0-2, 5"
  std::string why = {};
};

struct VerdictValue {
  std::int64_t since = 0;
  std::optional<bool> alarm = {};
  std::optional<bool> spins = {};
  std::optional<std::string> waiting = {};
  std::vector<SuspectValue> awaited = {};
  std::string line = {};
  std::optional<std::string> hold = {};
};

static void fields(codec::JsonFields& io, NodeNewsValue& news) {
  io.needed("number", news.number, codec::JsonRange{0, kMostNumber});
  io.optional("pids", news.pids);
  io.optional("gpus", news.gpus);
  io.optional("lacks", news.lacks);
  io.optional("recorders", news.recorders);
  io.optional("waits", news.waits);
  io.optional("timed_out", news.timed_out);
}

static void fields(codec::JsonFields& io, WorldSlow& slow) {
  io("rank", slow.rank, {-1, kMostRank});
  io("words", slow.words);
  io.optional("name", slow.name);
}

static void fields(codec::JsonFields& io, SuspectValue& suspect) {
  io("ranks", suspect.ranks);
  io("why", suspect.why);
}

static void fields(codec::JsonFields& io, VerdictValue& verdict) {
  io("since", verdict.since, {0, kMostNumber});
  io.optional("alarm", verdict.alarm);
  io.optional("spins", verdict.spins);
  io.optional("waiting", verdict.waiting);
  io("awaited", verdict.awaited);
  io("line", verdict.line);
  io.optional("hold", verdict.hold);
}

static void fields(codec::JsonFields& io, WorldNews& news) {
  io("state", news.state);
  io("words", news.words);
  io("alarms", news.alarms, {0, kMostRank});
  io("alarm", news.alarm);
  io("timeout", news.timeout);
  io("unknown", news.unknown);
  io("number", news.number, {0, kMostNumber});
}

static std::string with_fold(nlohmann::ordered_json json, const std::optional<Fold>& fold) {
  if (fold) {
    const std::string text = fold_json(*fold);
    if (text.size() <= kMostFoldNews) json["fold"] = codec::parse_ordered_json(text);
  }
  return codec::print_json(json);
}

static Result<std::optional<Fold>> fold_in(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("fold")) return std::optional<Fold>();
  LOCKSTEP_TRY_ASSIGN(Fold fold, read_fold(codec::print_json(json["fold"])));
  return std::optional(std::move(fold));
}

template <typename Number>
static std::optional<RankNumbers> rank_numbers(const std::map<int, Number>& by_rank) {
  if (by_rank.empty()) return std::nullopt;
  RankNumbers numbers;
  for (const auto& [rank, number] : by_rank)
    numbers[std::to_string(rank)] = number;
  return numbers;
}

// Leaves out numbers below `least`.
template <typename Number>
static std::map<int, Number> by_rank(const std::optional<RankNumbers>& numbers, int least) {
  std::map<int, Number> all;
  for (const auto& [name, number] : numbers.value_or(RankNumbers())) {
    const auto rank = parse_int(name);
    if (rank && *rank >= 0 && *rank <= kMostRank && number >= least && number <= kMostRank)
      all[static_cast<int>(*rank)] = static_cast<Number>(number);
  }
  return all;
}

std::string print_news(const NodeNews& news) {
  NodeNewsValue value{.number = news.number, .waits = news.waits, .timed_out = news.timed_out};
  if (news.lacks) value.lacks = true;
  if (!news.recorders.empty() && news.recorders.size() <= kMostRecorderNews)
    value.recorders = news.recorders;
  value.pids = rank_numbers(news.pids);
  value.gpus = rank_numbers(news.gpus);
  return with_fold(codec::write_fields(value), news.fold);
}

static std::optional<std::string> set_text(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

static std::optional<bool> set_flag(bool flag) {
  return flag ? std::optional(true) : std::nullopt;
}

static VerdictValue value_of(const Verdict& verdict) {
  VerdictValue value{.since = verdict.since.count(),
                     .alarm = set_flag(verdict.alarm),
                     .spins = set_flag(verdict.spins),
                     .waiting = set_text(ranges_text(verdict.waiting, kMostVerdictRanges)),
                     .line = verdict.place.line,
                     .hold = set_text(verdict.hold)};
  for (const Suspect& suspect : verdict.awaited)
    value.awaited.push_back({ranges_text(suspect.ranks, kMostVerdictRanges), suspect.why});
  return value;
}

// left: at most so many ranks, in all.
static std::vector<int> ranks_in(const std::string& text, std::size_t& left) {
  auto ranks = parse_ranges(text, left).value_or(std::vector<int>());
  left -= ranks.size();
  return ranks;
}

// Returns nullopt if there is none, or one that this version does not know.
static std::optional<Verdict> read_verdict(const nlohmann::json& json, std::string_view state) {
  const auto word = std::find(kVerdictStateWords.begin(), kVerdictStateWords.end(), state);
  VerdictValue value;
  if (word == kVerdictStateWords.end() || !json.is_object() || !json.contains("verdict") ||
      !codec::read_fields(json["verdict"], value, {.strict = false, .list = kMostListed}))
    return std::nullopt;
  // A range of a few bytes may name millions of ranks: one limit holds for all lists together.
  std::size_t left = kMostVerdictRanks;
  Verdict verdict{.state = static_cast<VerdictState>(word - kVerdictStateWords.begin()),
                  .since = Millis(value.since),
                  .alarm = value.alarm.value_or(false),
                  .waiting = ranks_in(value.waiting.value_or(""), left),
                  .place = {.line = printable(value.line, kMostName)},
                  .hold = printable(value.hold.value_or(""), kMostWords),
                  .spins = value.spins.value_or(false)};
  for (const SuspectValue& suspect : value.awaited)
    verdict.awaited.push_back({ranks_in(suspect.ranks, left), printable(suspect.why, kMostName)});
  std::erase_if(verdict.awaited, [](const Suspect& each) { return each.ranks.empty(); });
  return verdict;
}

static std::optional<WorldSlow> read_slow(const nlohmann::json& json) {
  WorldSlow slow;
  if (!json.is_object() || !json.contains("slow") ||
      !codec::read_fields(json["slow"], slow, {.strict = false}))
    return std::nullopt;
  // No rank slows the job now.
  if (slow.rank < 0) return WorldSlow{};
  slow.words = printable(slow.words, kMostWords);
  slow.name =
      slow.name.empty() ? straggler_name(slow.rank, {}, {}) : printable(slow.name, kMostWords);
  return slow;
}

std::string print_news(const WorldNews& news) {
  auto json = codec::write_fields(news);
  if (news.verdict) json["verdict"] = codec::write_fields(value_of(*news.verdict));
  if (news.slow) json["slow"] = codec::write_fields(*news.slow);
  return with_fold(std::move(json), news.fold);
}

Result<NodeNews> read_node_news(std::string_view text) {
  const auto json = codec::parse_json(text, {.bytes = kMostNewsBytes});
  NodeNewsValue value;
  LOCKSTEP_TRY(codec::read_fields(json, value, {.strict = false, .list = kMostListed}));
  NodeNews news{.number = value.number,
                .pids = by_rank<std::uint32_t>(value.pids, 1),
                .gpus = by_rank<int>(value.gpus, 0),
                .lacks = value.lacks.value_or(false),
                .recorders = std::move(value.recorders).value_or(""),
                .waits = std::move(value.waits),
                .timed_out = value.timed_out};
  if (news.timed_out && (*news.timed_out < 0 || *news.timed_out > kMostRank)) news.timed_out = -1;
  if (news.recorders.size() > kMostRecorderNews) news.recorders.clear();
  LOCKSTEP_TRY_ASSIGN(news.fold, fold_in(json));
  return news;
}

Result<WorldNews> read_world_news(std::string_view text) {
  const auto json = codec::parse_json(text, {.bytes = kMostNewsBytes});
  WorldNews news;
  LOCKSTEP_TRY(codec::read_fields(json, news, {.strict = false, .list = kMostListed}));
  news.state = printable(news.state, 32);
  news.words = printable(news.words, kMostWords);
  news.alarm = printable_lines(news.alarm);
  news.verdict = read_verdict(json, news.state);
  news.slow = read_slow(json);
  LOCKSTEP_TRY_ASSIGN(news.fold, fold_in(json));
  return news;
}

}  // namespace lockstep::looks
