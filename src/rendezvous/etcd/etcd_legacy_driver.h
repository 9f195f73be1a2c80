// The driver of the older etcd rendezvous (etcd_legacy_member.h) over etcd's v2 API: joins rounds,
// renews this node's lease, and watches the running round. No callback runs inside the call that
// takes it. The driver may be destroyed inside any callback.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/etcd/etcd_legacy_member.h"
#include "rendezvous/etcd/etcd_transport.h"
#include "rendezvous/etcd/etcd_v2_codec.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::etcd {

struct LegacySettings {
  std::string prefix = "/torchelastic/p2p";
  std::string run_id;
  LegacyRules rules;
  LegacyState::Agent self;
};

class EtcdLegacyDriver {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  // The observed state of this node's round. state: nullopt if etcd has none.
  struct Watched {
    std::optional<LegacyState> state;
    std::vector<std::size_t> gone;  // ranks of other nodes with an expired lease
  };

  // The transport must outlive the driver.
  EtcdLegacyDriver(EtcdTransport& etcd, LegacySettings settings);
  EtcdLegacyDriver(const EtcdLegacyDriver&) = delete;
  EtcdLegacyDriver& operator=(const EtcdLegacyDriver&) = delete;

  // Creates the run's folders. Called once, before any other function.
  void open(const Done<void>& done);
  // Joins a round and returns its final state. nullopt: the job ended while this node was a spare.
  void join(Done<std::optional<LegacyState>> done);
  void close(Done<void> done);  // ends the rendezvous for all agents
  void drop_lease(
      Done<void> done);  // for a node that leaves alone: its lease ends now instead of expiring

  // Sets a function that gets the state regularly, from a finished join() to the next operation.
  void on_watched(std::function<void(const Watched&)> fn) { on_watched_ = std::move(fn); }
  // Sets a function that is called once if etcd has not answered for longer than a lease lives.
  void on_outage(std::function<void(const Error&)> fn) { on_outage_ = std::move(fn); }

  std::size_t rank() const { return member_.rank(); }
  std::string round_folder() const { return member_.folder_of(member_.version()); }
  const std::optional<LegacyState>& last_seen() const { return seen_; }
  bool spare() const { return member_.spare(); }
  io::TimePoint deadline() const { return member_.deadline(); }  // of a pending join

 private:
  using Ms = std::chrono::milliseconds;
  using Answered = std::function<void(Result<http::Answer>)>;
  using Replied = std::function<void(Result<V2Reply>)>;
  enum class Twice { harmful, harmless };

  void ask(http::Call call, Twice twice, Ms timeout, Answered done);
  void request(http::Call call, Twice twice, Replied done, Ms timeout = Ms(0));
  void put(const std::string& key, const V2Form& form, Twice twice, Replied done);
  void put_state(const LegacyState& state, std::optional<std::chrono::seconds> ttl, V2Form form,
                 Replied done);
  void make_folders(std::size_t next, const Done<void>& done);
  std::string key(std::string_view name) const { return folder_ + "/rdzv/" + std::string(name); }

  void look();
  Status take_seen(const V2Reply& reply);
  Error too_late() const;
  void act(LegacyStep step);
  void create();
  void count_up();
  void offer(const std::string& version);
  void claim(LegacyStep step);
  void replace(const LegacyStep& step);
  void destroy();
  void count(const LegacyState& state);
  void check(const LegacyState& state);
  void await_change(const std::string& at, bool below, LegacyStep::Clock::time_point until,
                    const std::function<void()>& then);
  void look_later(Ms pause);
  void trouble(Error error);
  void finish(Result<std::optional<LegacyState>> result);

  void tick();
  void list_leases(const std::string& version,
                   std::function<void(Result<std::vector<std::string>>)> done);
  void tell_watched(const std::vector<std::string>& leases);
  void missed(const Error& error);
  void keep_lease();
  void keep_run();

  EtcdTransport& etcd_;
  std::string folder_;
  LegacyMember member_;
  LegacySettings settings_;
  EtcdCalls calls_;
  CallbackScope round_calls_;  // of the pending join or the running round
  Done<std::optional<LegacyState>> join_done_;
  std::optional<LegacyState> round_;  // this node's round, as it became final
  std::optional<LegacyState> seen_;
  std::string text_;         // the state's text in etcd
  std::uint64_t index_ = 0;  // etcd's index at the last read
  std::string lease_;        // this node's lease key; "": none
  std::optional<Error> last_error_;
  io::TimePoint announced_at_;
  std::optional<io::TimePoint> outage_since_;
  bool told_outage_ = false;
  std::function<void(const Watched&)> on_watched_;
  std::function<void(const Error&)> on_outage_;
  io::Timer turn_;
  io::Timer lease_timer_;
  io::Timer run_timer_;
};

// Returns the keys of a listed folder.
Result<std::vector<std::string>> parse_v2_keys(const http::Answer& answer);

}  // namespace lockstep::rendezvous::etcd
