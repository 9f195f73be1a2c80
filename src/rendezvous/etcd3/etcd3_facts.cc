// JSON of the job's facts.
#include "rendezvous/etcd3/etcd3_facts.h"

#include "base/text.h"
#include "codec/json.h"

#include <utility>

namespace lockstep::rendezvous::etcd3 {
namespace {

using Json = nlohmann::json;

// The facts lie in etcd, where other programs can write, so every number is checked.
constexpr int kMostRanks = 65'536;

bool is_rank(const Json& json) {
  return json.is_number_unsigned() && json.get<std::uint64_t>() < kMostRanks;
}

// Reads the members that only help a new leader. Malformed ones are skipped.
void read_helpful(const Json& json, Etcd3Facts& facts) {
  const auto why = json.find("why");
  if (why != json.end() && why->is_string()) facts.why = printable(why->get<std::string>(), 500);
  const auto good = json.find("good");
  if (good != json.end() && good->is_boolean()) facts.good = good->get<bool>();
  const auto lead = json.find("lead");
  if (lead != json.end() && is_rank(*lead)) facts.lead = lead->get<int>();
  const auto finished = json.find("finished");
  if (finished == json.end() || !finished->is_array() || finished->size() > kMostRanks) return;
  for (const Json& rank : *finished) {
    if (is_rank(rank)) facts.finished.push_back(rank.get<int>());
  }
}

}  // namespace

void merge_facts(Etcd3Facts& known, const Etcd3Facts& heard) {
  const Etcd3Facts before = known;
  // Restarts order two records of the same round.
  const auto age = [](const Etcd3Facts& of) { return std::pair(of.round, of.restarts); };
  if (age(heard) >= age(before)) known = heard;
  // A closed job stays closed, whichever facts are newer.
  const Etcd3Facts& last = heard.closed ? heard : before;
  if (!last.closed) return;
  known.closed = true;
  known.good = last.good;
  known.why = last.why;
}

std::string print_etcd3_facts(const Etcd3Facts& facts) {
  const Json json{{"round", facts.round},      {"restarts", facts.restarts},
                  {"closed", facts.closed},    {"why", facts.why},
                  {"good", facts.good},        {"lead", facts.lead},
                  {"finished", facts.finished}};
  return codec::print_json(json);
}

Result<Etcd3Facts> parse_etcd3_facts(std::string_view text) {
  constexpr std::int64_t kMostRestarts = 1'000'000'000;
  constexpr std::uint64_t kMostRounds = INT64_MAX / 4;  // leaves room for later rounds
  const Json json = codec::parse_json(text);
  const auto bad = [&] {
    return fail(Errc::corrupt, "the job's facts in etcd make no sense: " + printable(text, 100));
  };
  if (!json.is_object()) return bad();
  const auto round = json.find("round");
  const auto restarts = json.find("restarts");
  const auto closed = json.find("closed");
  if (round == json.end() || !round->is_number_integer()) return bad();
  if (restarts == json.end() || !restarts->is_number_unsigned()) return bad();
  if (closed == json.end() || !closed->is_boolean()) return bad();
  if (restarts->get<std::uint64_t>() > kMostRestarts) return bad();
  if (round->is_number_unsigned() && round->get<std::uint64_t>() > kMostRounds) return bad();
  Etcd3Facts facts;
  facts.round = round->get<std::int64_t>();
  if (facts.round < -1) return bad();
  facts.restarts = static_cast<int>(restarts->get<std::uint64_t>());
  facts.closed = closed->get<bool>();
  read_helpful(json, facts);
  return facts;
}

}  // namespace lockstep::rendezvous::etcd3
