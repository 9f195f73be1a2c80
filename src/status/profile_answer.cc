#include "status/profile_answer.h"

#include "base/text.h"
#include "codec/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace lockstep::status {
namespace {

constexpr std::size_t kMostAnswer = 4UL << 20;
constexpr std::size_t kMostProfileRanks = 4096;
constexpr std::array<std::string_view, 3> kQueryWords{"start", "look", "end"};

}  // namespace

static void fields(codec::JsonFields& io, RankProfile& rank) {
  io("rank", rank.rank, {0, 1 << 24});
  io("state", rank.state, kProfileWords);
}

static void fields(codec::JsonFields& io, ProfileAnswer& answer) {
  io("node", answer.node);
  io("refusal", answer.refusal);
  io("hint", answer.hint);
  io.optional("late", answer.late);  // an agent does not say so of itself
  io("id", answer.id, {0, kMostProfileId});
  io("folder", answer.folder);
  io("ranks", answer.ranks);
}

std::string profile_answer_json(const ProfileAnswer& answer) {
  return codec::print_json(codec::write_fields(answer));
}

Result<ProfileAnswer> read_profile_answer(std::string_view text) {
  ProfileAnswer answer;
  LOCKSTEP_TRY(codec::read_fields(
      codec::parse_json(text, {.bytes = kMostAnswer, .depth = 8}), answer,
      {.strict = true, .text = 4096, .list = kMostProfileRanks, .printable = 4096}));
  return answer;
}

std::string print_profile_query(const ProfileQuery& query) {
  std::string text =
      fmt::format("do={}&id={}", kQueryWords[static_cast<std::size_t>(query.what)], query.id);
  const ProfileWish& wish = query.wish;
  if (query.what == ProfileQuery::What::start)
    text += fmt::format("&steps={}&every={}&ms={}&limit={}&ranks={}", wish.steps, wish.every,
                        wish.millis, wish.limit, wish.ranks);
  return text;
}

Result<ProfileQuery> read_profile_query(std::string_view text) {
  ProfileQuery query;
  const auto bad = [](std::string_view word) {
    return fail(Errc::invalid_input, "unknown request: " + printable(word));
  };
  const auto number = [](std::string_view word, std::int64_t most, auto& into) {
    const auto value = parse_int(word);
    if (!value || *value < 0 || *value > most) return false;
    into = static_cast<std::remove_reference_t<decltype(into)>>(*value);
    return true;
  };
  constexpr std::int64_t kMostMillis = std::int64_t{kMostProfileSeconds} * 1000;
  for (const std::string& each : split(text, '&')) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos) return bad(each);
    const std::string_view name = std::string_view(each).substr(0, equals);
    const std::string_view value = std::string_view(each).substr(equals + 1);
    const auto* const word = std::find(kQueryWords.begin(), kQueryWords.end(), value);
    bool fine = true;
    // A name that is not in this list comes from a newer command: ignore it.
    if (name == "do") {
      fine = word != kQueryWords.end();
      query.what = static_cast<ProfileQuery::What>(fine ? word - kQueryWords.begin() : 1);
    } else if (name == "id") {
      fine = number(value, kMostProfileId, query.id);
    } else if (name == "steps") {
      fine = number(value, kMostProfileSteps, query.wish.steps);
    } else if (name == "every") {
      fine = number(value, 1'000'000, query.wish.every) && query.wish.every > 0;
    } else if (name == "ms") {
      fine = number(value, kMostMillis, query.wish.millis);
    } else if (name == "limit") {
      fine = number(value, 24L * 3600, query.wish.limit);
    } else if (name == "ranks") {
      query.wish.ranks = value;
    }
    if (!fine) return bad(each);
  }
  return query;
}

std::string profile_file_stem(std::int64_t id, int rank) {
  return fmt::format("{}{}-rank-{}", kProfileFileHead, id, rank);
}

bool is_profile_file(std::string_view name, std::int64_t id, int rank) {
  // Kineto adds the pid of the process to the name that was asked for: "..._4711.json".
  constexpr std::string_view kTail = ".json";
  const std::string head = profile_file_stem(id, rank) + "_";
  if (!name.starts_with(head) || !name.ends_with(kTail)) return false;
  name.remove_prefix(head.size());
  if (name.size() <= kTail.size() || name.size() > kTail.size() + 10) return false;
  name.remove_suffix(kTail.size());
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace lockstep::status
