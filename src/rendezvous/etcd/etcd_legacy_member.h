// The state machine of one node in the older etcd rendezvous: returns the next step for the state
// just read. Pure; the driver (etcd_legacy_driver.h) carries the steps out. Interoperates with
// torchrun's EtcdRendezvous.
#pragma once

#include "rendezvous/etcd/etcd_legacy_state.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::etcd {

struct LegacyRules {
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  std::chrono::milliseconds join_timeout{900'000};
  std::chrono::milliseconds last_call_timeout{30'000};
};

// torchrun's values.
inline constexpr std::chrono::seconds kLegacySetupTtl{5};
inline constexpr std::chrono::seconds kLegacyRoundTtl{10};
inline constexpr std::chrono::seconds kLegacyLeaseTtl{10};
inline constexpr std::chrono::seconds kLegacyRunTtl{7200};

struct LegacyStep {
  enum class Kind {
    create,   // no state: set up a round, then look again
    replace,  // replace the state by `state` with `ttl`; took_effect(); look again
    claim,    // set this node's lease, then do as for replace
    destroy,  // delete the state, then look again
    check,    // if a lease of `state` is missing, destroy; else wait for a change; look again
    count,    // count the missing leases of `state`: lost(); look again
    watch,    // wait for a change, at most until `until`; look again
    done,     // `state` is final; rank() is this node's rank
    closed,
    released,  // closed, and this node was only a spare
    timed_out,
  };
  using Clock = std::chrono::steady_clock;

  Kind kind = Kind::watch;
  LegacyState state = {};
  std::optional<std::chrono::seconds> ttl = {};
  Clock::time_point until = {};
};

class LegacyMember {
 public:
  using TimePoint = LegacyStep::Clock::time_point;

  // folder: the run's folder, "/torchelastic/p2p/run_ID".
  LegacyMember(LegacyRules rules, LegacyState::Agent self, std::string folder)
      : rules_(rules), self_(std::move(self)), folder_(std::move(folder)) {}

  void begin(TimePoint now);
  // Returns the next step. seen: nullopt if etcd has no state.
  LegacyStep next(const std::optional<LegacyState>& seen, TimePoint now);
  // Called when the last step's replace or claim has succeeded.
  void took_effect();

  // Called with the answer to Kind::count.
  void lost(std::size_t nodes, TimePoint now);

  std::size_t rank() const { return rank_; }
  const std::string& version() const { return version_; }
  bool spare() const { return spare_; }
  TimePoint deadline() const { return deadline_; }
  std::string folder_of(std::string_view version) const;  // "FOLDER/rdzv/v_N"
  std::string lease_key() const;                          // for version() and rank()

 private:
  enum class Phase { outside, joined, confirmed };

  std::optional<LegacyStep> let_survivors_in(const std::optional<LegacyState>& seen, TimePoint now);
  LegacyStep at_joinable(const LegacyState& seen, TimePoint now);
  LegacyStep join(LegacyState state);
  LegacyStep last_call(const LegacyState& seen, TimePoint now);
  LegacyStep at_frozen(const LegacyState& seen);
  LegacyStep at_final(const LegacyState& seen, TimePoint now);
  void recognise(const LegacyState& seen);
  LegacyStep watch(TimePoint until) const;

  LegacyRules rules_;
  LegacyState::Agent self_;
  std::string folder_;
  TimePoint deadline_;
  TimePoint last_call_;  // then the responsible node freezes the round
  TimePoint refresh_;
  Phase phase_ = Phase::outside;
  Phase phase_after_ = Phase::outside;  // phase_ once the last step takes effect
  std::string announced_after_;
  std::string version_;    // of this node's current or last round
  std::string left_;       // the last round seen to its end
  std::string announced_;  // of the round that knows of this waiting node
  std::size_t rank_ = 0;
  bool responsible_ = false;
  bool spare_ = false;
  LegacyState full_;                      // the full round that has no place for this spare
  std::optional<std::size_t> survivors_;  // survivors of that round, once it has ended
  TimePoint patience_;                    // how long to wait for the survivors to join
};

// Returns the ranks that have confirmed and have no lease among `keys`.
std::vector<std::size_t> missing_leases(const LegacyState& state,
                                        const std::vector<std::string>& keys);

}  // namespace lockstep::rendezvous::etcd
