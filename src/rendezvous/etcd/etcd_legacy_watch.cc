// The running round: renewing this node's lease, and watching the state and the other nodes'
// leases.
#include "rendezvous/etcd/etcd_json.h"
#include "rendezvous/etcd/etcd_legacy_driver.h"

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Three renewals fit into the life of a lease, so one lost request does no harm.
constexpr milliseconds kLeasePause{3000};
// How long to wait for a change before looking at the leases again.
constexpr milliseconds kLookPause{2000};
constexpr milliseconds kTick{500};
constexpr milliseconds kCallPatience{2000};  // per call; the next call may do better
// More leases than nodes a job may have: not a listing of this folder.
constexpr std::size_t kMostKeys = 1U << 17;

}  // namespace

Result<std::vector<std::string>> parse_v2_keys(const http::Answer& answer) {
  LOCKSTEP_TRY_ASSIGN(const V2Reply reply, parse_v2_reply(answer));
  std::vector<std::string> keys;
  if (reply.error != 0) return keys;  // the folder is gone, with all its keys
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
            // An unreadable state is not this node's round.
            if (!take_seen(*reply)) seen_.reset();
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
  // This node was away for longer than its lease, and no other node has noticed: take the lease
  // again.
  if (std::erase(watched.gone, member_.rank()) > 0 && !lease_.empty() && same)
    request(
        v2_put(lease_, {{"value", ""}, {"ttl", std::to_string(kLegacyLeaseTtl.count())}}),
        Twice::harmless, [](const Result<V2Reply>&) {}, kCallPatience);
  await_change(key("active_version"), false, io::Clock::now() + kLookPause, [this] { tick(); });
  if (const auto tell = on_watched_) tell(watched);
}

// Handles a silent etcd. The workers keep running as long as the other nodes take this node for
// alive, which is the lifetime of a lease.
void EtcdLegacyDriver::missed(const Error& error) {
  const auto now = io::Clock::now();
  if (!outage_since_) outage_since_ = now;
  turn_.start(kTick, [this] { tick(); });
  if (now - *outage_since_ < kLegacyLeaseTtl || std::exchange(told_outage_, true)) return;
  if (const auto tell = on_outage_) tell(error);
}

}  // namespace lockstep::rendezvous::etcd
