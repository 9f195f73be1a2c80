// One node's way through the older etcd rendezvous: which step follows from what is seen. Pure; the
// driver (etcd_legacy_driver.h) carries the steps out. Interoperates with torchrun's
// EtcdRendezvous.
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

// As torchrun has them.
inline constexpr std::chrono::seconds kLegacySetupTtl{5};
inline constexpr std::chrono::seconds kLegacyRoundTtl{10};
inline constexpr std::chrono::seconds kLegacyLeaseTtl{10};
inline constexpr std::chrono::seconds kLegacyRunTtl{7200};

struct LegacyStep {
  enum class Kind {
    create,   // nothing is there: set up a round, and look again
    replace,  // put `state` in the place of what was seen, with `ttl`: took_effect(), look again
    claim,    // set the own lease, and then as replace
    destroy,  // delete what was seen; look again
    check,    // if a lease of `state` is missing destroy it, else wait for a change; look again
    count,    // how many leases of `state` are missing: lost(), look again
    watch,    // wait for a change, but not after `until`; look again
    done,     // `state` is final, rank() is ours
    closed,
    released,  // closed, and this node was a spare
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

  // folder: of the run, "/torchelastic/p2p/run_ID".
  LegacyMember(LegacyRules rules, LegacyState::Agent self, std::string folder)
      : rules_(rules), self_(std::move(self)), folder_(std::move(folder)) {}

  void begin(TimePoint now);
  // seen: nullopt: there is none.
  LegacyStep next(const std::optional<LegacyState>& seen, TimePoint now);
  // The last step's replace or claim was done.
  void took_effect();

  // As Kind::count asks.
  void lost(std::size_t nodes, TimePoint now);

  std::size_t rank() const { return rank_; }
  const std::string& version() const { return version_; }
  bool spare() const { return spare_; }
  TimePoint deadline() const { return deadline_; }
  std::string folder_of(std::string_view version) const;  // "FOLDER/rdzv/v_N"
  std::string lease_key() const;                          // of version() and rank()

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
  TimePoint last_call_;  // after it the responsible node freezes the round
  TimePoint refresh_;
  Phase phase_ = Phase::outside;
  Phase phase_after_ = Phase::outside;  // the last step, if it takes effect
  std::string announced_after_;
  std::string version_;    // of the round that we are in, or were
  std::string left_;       // of the last one that we were in to its end
  std::string announced_;  // of the round that we have told of our waiting
  std::size_t rank_ = 0;
  bool responsible_ = false;
  bool spare_ = false;
  LegacyState full_;                      // the round that has no place for this spare
  std::optional<std::size_t> survivors_;  // of it, once it has ended
  TimePoint patience_;                    // for them to join again
};

// The ranks that have confirmed and whose lease is not among the keys.
std::vector<std::size_t> missing_leases(const LegacyState& state,
                                        const std::vector<std::string>& keys);

}  // namespace lockstep::rendezvous::etcd
