#include "rendezvous/static_backend/static_notes.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <cstddef>

namespace lockstep::rendezvous::static_backend {
namespace {

using nlohmann::json;
constexpr std::size_t kMostBytes = 256U << 10;
constexpr std::size_t kMostWords = 512;
constexpr std::size_t kMostShown = 3;

json parse(std::string_view text) {
  return codec::parse_json(text, {.bytes = kMostBytes});
}

}  // namespace

std::string StaticKeys::board_prefix(std::int64_t round) const {
  return fmt::format("{}/lockstep.{}/", run_id_, round);
}

// With torchrun agents, and in the first round, keys must be where torchrun looks.
std::string StaticKeys::round_prefix(std::int64_t round, bool all_ours) const {
  return round == 0 || !all_ours ? run_id_ + "/" : board_prefix(round);
}

std::string StaticKeys::claim(std::int64_t round, int node_rank) const {
  return fmt::format("{}lockstep/claim/{}", board_prefix(round), node_rank);
}

std::string StaticKeys::alive(int node_rank, std::int64_t since) const {
  if (since == 0) return fmt::format("{}/lockstep/alive/{}", run_id_, node_rank);
  return fmt::format("{}/lockstep/alive/{}.{}", run_id_, node_rank, since);
}

std::string encode_open(const FreePlaces& free) {
  json places = json::array();
  for (const auto& [rank, why] : free)
    places.push_back(json::array({rank, why}));
  return codec::print_json(json{{"free", std::move(places)}});
}

FreePlaces decode_open(std::string_view text) {
  FreePlaces free;
  const json value = parse(text);
  if (!value.is_object() || !value.contains("free") || !value["free"].is_array()) return free;
  for (const json& place : value["free"])
    if (place.is_array() && place.size() == 2 && place[0].is_number_integer() && place[0] >= 0 &&
        place[0] <= INT32_MAX && place[1].is_string())
      free.emplace(place[0].get<int>(), printable(place[1].get<std::string>(), kMostWords));
  return free;
}

std::string encode_over(const OverNote& note) {
  // Plain text means that no round follows.
  return note.next ? codec::print_json(json{{"next", true}, {"why", note.why}}) : note.why;
}

OverNote decode_over(std::string_view text) {
  const json value = parse(text);
  if (value.is_object() && value.contains("next") && value["next"] == true &&
      value.contains("why") && value["why"].is_string())
    return {printable(value["why"].get<std::string>(), kMostWords), true};
  return {printable(text, kMostWords), false};
}

std::string free_places_text(const FreePlaces& free) {
  if (free.empty()) return {};
  std::string text = "; a new node may replace a lost one: ";
  std::size_t shown = 0;
  for (const auto& [rank, why] : free) {
    if (shown > 0) text += ", ";
    if (shown++ == kMostShown) return text + fmt::format("and {} more", free.size() - kMostShown);
    text += fmt::format("{}: start one with --node-rank {}", why, rank);
  }
  return text;
}

}  // namespace lockstep::rendezvous::static_backend
