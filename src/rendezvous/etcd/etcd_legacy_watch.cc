// What goes on during a round: keeping the own lease, and looking at the state and at the leases of
// the others.
#include "rendezvous/etcd/etcd_json.h"
#include "rendezvous/etcd/etcd_legacy_driver.h"

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kLeasePause{3000};
constexpr milliseconds kLookPause{2000};  // after it the leases are looked at again
constexpr milliseconds kTick{500};
constexpr milliseconds kCallPatience{2000};  // with one call: the next may do better
constexpr std::size_t kMostKeys = 1U << 17;

}  // namespace

Result<std::vector<std::string>> parse_v2_keys(const http::Answer& answer) {
  LOCKSTEP_TRY_ASSIGN(const V2Reply reply, parse_v2_reply(answer));
  std::vector<std::string> keys;
  if (reply.error != 0) return keys;  // the folder is gone, and all in it
  const json body = codec::parse_json(answer.body, kEtcdJson);
  const auto node = body.find("node");
  if (node == body.end() || !node->is_object()) return keys;
  const auto nodes = node->find("nodes");
  if (nodes == node->end() || !nodes->is_array() || nodes->size() > kMostKeys) return keys;
  keys.reserve(nodes->size());
  for (const json& child : *nodes)
    if (child.is_object() && child.contains("key") && child["key"].is_string())
      keys.push_back(child["key"]);
  return keys;
}

void EtcdLegacyDriver::list_leases(const std::string& version,
                                   std::function<void(Result<std::vector<std::string>>)> done) {
  ask(v2_get(member_.folder_of(version), "quorum=true"), Twice::harmless, kCallPatience,
      [done = std::move(done)](const Result<http::Answer>& answer) {
        done(answer ? parse_v2_keys(*answer) : tl::make_unexpected(answer.error()));
      });
}

void EtcdLegacyDriver::keep_lease() {
  lease_timer_.start(kLeasePause, [this] { keep_lease(); });
  request(
      v2_put(lease_, {{"refresh", "true"},
                      {"prevExist", "true"},
                      {"ttl", std::to_string(kLegacyLeaseTtl.count())}}),
      Twice::harmless, [](const Result<V2Reply>&) {}, kCallPatience);
}

void EtcdLegacyDriver::tick() {
  request(v2_get(key("active_version"), "quorum=true"), Twice::harmless,
          round_calls_([this](const Result<V2Reply>& reply) {
            if (!reply) return missed(reply.error());
            if (!take_seen(*reply)) seen_.reset();  // what makes no sense is not our round
            list_leases(member_.version(),
                        round_calls_([this](const Result<std::vector<std::string>>& leases) {
                          if (!leases) return missed(leases.error());
                          tell_watched(*leases);
                        }));
          }),
          kCallPatience);
}

void EtcdLegacyDriver::tell_watched(const std::vector<std::string>& leases) {
  outage_since_.reset();
  Watched watched{.state = seen_, .gone = {}};
  if (round_) watched.gone = missing_leases(*round_, leases);
  const bool same = seen_ && seen_->version == member_.version();
  // This node was away for longer than its lease lives, and nobody has noticed.
  if (std::erase(watched.gone, member_.rank()) > 0 && !lease_.empty() && same)
    request(
        v2_put(lease_, {{"value", ""}, {"ttl", std::to_string(kLegacyLeaseTtl.count())}}),
        Twice::harmless, [](const Result<V2Reply>&) {}, kCallPatience);
  await_change(key("active_version"), false, io::Clock::now() + kLookPause, [this] { tick(); });
  if (const auto tell = on_watched_) tell(watched);
}

// etcd has not answered: the workers go on for as long as the others would take this node to be
// alive.
void EtcdLegacyDriver::missed(const Error& error) {
  const auto now = io::Clock::now();
  if (!outage_since_) outage_since_ = now;
  turn_.start(kTick, [this] { tick(); });
  if (now - *outage_since_ < kLegacyLeaseTtl || std::exchange(told_outage_, true)) return;
  if (const auto tell = on_outage_) tell(error);
}

}  // namespace lockstep::rendezvous::etcd
