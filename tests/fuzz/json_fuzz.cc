// The door for JSON, and those behind it that read a peer's: any bytes end in a value within the
// limits or in none, both kinds of value say the same, and what was read can be printed and read
// again. Limits are small, so that they are met.
#include "agent/error_file.h"
#include "agent/failure_report.h"
#include "agent/file_timer.h"
#include "base/error.h"
#include "codec/json.h"
#include "looks/world_looks.h"
#include "rendezvous/etcd/etcd_legacy_state.h"
#include "rendezvous/etcd/etcd_v2_codec.h"
#include "rendezvous/etcd3/etcd3_codec.h"
#include "rendezvous/etcd3/etcd3_facts.h"
#include "rendezvous/rank_exchange.h"
#include "rendezvous/round_board.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace {
using namespace lockstep;  // NOLINT

constexpr codec::JsonLimits kSmall{.bytes = 1U << 14, .depth = 12, .members = 300, .values = 1000};

template <class Json>
size_t depth_of(const Json& value) {
  size_t depth = 0;
  for (const auto& member : value)
    if (member.is_structured()) depth = std::max(depth, depth_of(member));
  return value.is_structured() ? depth + 1 : 0;
}

void check_door(std::string_view bytes) {
  const auto sorted = codec::parse_json(bytes, kSmall);
  const auto ordered = codec::parse_ordered_json(bytes, kSmall);
  LOCKSTEP_CHECK(sorted.is_discarded() == ordered.is_discarded());
  if (sorted.is_discarded()) {
    // Within the limits nothing is refused that is JSON.
    LOCKSTEP_CHECK(bytes.size() > 300 || !nlohmann::json::accept(bytes) ||
                   depth_of(nlohmann::json::parse(bytes)) > kSmall.depth);
    return;
  }
  LOCKSTEP_CHECK(depth_of(sorted) <= kSmall.depth && depth_of(ordered) <= kSmall.depth);
  LOCKSTEP_CHECK(sorted == nlohmann::json::parse(bytes));
  LOCKSTEP_CHECK(ordered == nlohmann::ordered_json::parse(bytes));
  const std::string printed = codec::print_json(ordered, codec::JsonText::ascii);
  LOCKSTEP_CHECK(codec::parse_ordered_json(printed) == ordered);
}

void check_legacy(std::string_view bytes) {
  const auto state = rendezvous::etcd::decode_legacy_state(bytes);
  if (!state) return;
  const auto again =
      rendezvous::etcd::decode_legacy_state(rendezvous::etcd::encode_legacy_state(*state));
  LOCKSTEP_CHECK(again.has_value() && again->status == state->status);
  LOCKSTEP_CHECK(again->rest == state->rest);
}

// News of the nodes of a job. What was read is merged, printed and read again.
void check_news(std::string_view bytes) {
  looks::WorldLooks leader(2, 1000);
  leader.hear(1, bytes, {});
  looks::Fold own{{"n1"}, {{.key = 7, .ranks = {{0, {0}}}}}};
  const looks::Fold all = leader.merged(own, {});
  LOCKSTEP_CHECK(looks::count_alive(all) <= 1000 && !all.groups.empty());
  const auto waits = leader.waits("0:kk", {});
  LOCKSTEP_CHECK(!waits || waits->size() <= 1000);
  looks::WorldView view;
  (void)view.hear(bytes, {});
  if (!view.knows()) return;
  LOCKSTEP_CHECK(looks::read_world_news(looks::print_news(view.news())).has_value());
  (void)view.merged(own);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_door(bytes);
  check_legacy(bytes);
  check_news(bytes);
  const agent::ErrorRecord record = agent::parse_error_record(bytes);
  LOCKSTEP_CHECK(record.text.size() <= agent::kErrorTextLimit);
  LOCKSTEP_CHECK(!codec::parse_json(agent::with_error_code(record, 3)).is_discarded());
  (void)agent::parse_failures(bytes);
  (void)rendezvous::etcd3::parse_etcd3_reply(bytes);
  (void)rendezvous::etcd3::parse_etcd3_watch(bytes);
  (void)rendezvous::etcd3::parse_etcd3_refusal(bytes);
  (void)rendezvous::etcd3::parse_etcd3_facts(bytes);
  (void)rendezvous::decode_role_info(bytes);
  (void)rendezvous::decode_assigned_ranks(bytes);
  (void)rendezvous::decode_failure(bytes);
  http::Answer answer;
  answer.head.status = 200;
  answer.body = bytes;
  (void)rendezvous::etcd::parse_v2_reply(answer);
  agent::FileTimerTable timers;
  timers.feed(bytes);
  timers.feed("\n");
  return 0;
}
