// The first contact with machines that were just rented: waits until they answer, holds them to the
// host keys that were made for them, sees whether they are what was bought, and gives each its
// lease. All at once, each at its own pace. Blocks; Ctrl-C ends it with Errc::canceled.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "machine/health.h"
#include "machine/lease_terms.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

struct RentedHost {
  std::string name;     // for people: "gpus-0"
  std::string address;  // numeric
  int port = 22;
  std::string user;
  std::string key_path;         // of the private key to log in with
  std::string host_public_key;  // "ssh-ed25519 AAAA...": it was put into user data
  std::string told_key = {};    // the one that its image has made in place of that, where known
};

struct FirstContactRequest {
  std::vector<RentedHost> hosts;
  std::string pins;  // the cluster's file of host keys: written here, before and afterwards
  machine::HealthWish wish;
  machine::LeaseTerms lease;                     // now_ms is filled in here
  std::chrono::seconds patience{15 * 60};        // until a machine has to answer
  std::chrono::milliseconds silent_for{60'000};  // then the user is told what may block the port
  std::int64_t provider_ahead_ms = 0;  // the provider's clock, of this machine's; 0: unknown
  // For what is not healthy yet, and may become so by itself.
  std::chrono::milliseconds health_patience{std::chrono::minutes(5)};
  int lost_fd = -1;  // readable: one of them is gone, and nobody waits any longer
  // What happens with a machine, for people: "sshd does not answer yet". Not called twice in a row
  // with the same words for one machine.
  std::function<void(std::size_t host, std::string_view step)> on_step = {};
};

struct FirstContact {
  enum class Outcome {
    ready,        // healthy, and its lease runs
    unreachable,  // within `patience`, or it was lost on the way
    wrong_host,   // another host key: it must not be spoken to again
    sick,         // `findings` say how
    no_lease,     // it could not be given its lease: sudo asks for a password, say
  };

  Outcome outcome = Outcome::unreachable;
  std::string error = {};  // one line, with the machine's name; empty where it is ready
  std::vector<machine::HealthFinding> findings = {};
  std::string host_public_key = {};  // the one that is pinned now
  bool fresh_key = false;            // it is not the one that user data carried any more
  std::int64_t answered_ms = 0;      // Unix time when sshd answered first
  bool silent = false;               // within `patience` no SSH server has answered
};

// One for each host, in their order.
Result<std::vector<FirstContact>> make_first_contact(const FirstContactRequest& request);

// How long to wait before the next try, so long after the first one. Pure.
std::chrono::milliseconds next_try(std::chrono::milliseconds waited);

// What a machine says of its lease.
struct LeaseAnswer {
  machine::LeaseState state = {};
  std::string error = {};  // it was not reached, or refuses
};

// One for each place, in their order. keep: gives them a new end (terms.ends_ms) and, where it is
// not negative, a new limit of being idle. hold: for so many seconds being idle ends none of them.
Result<std::vector<LeaseAnswer>> ask_leases(const std::vector<hosts::HostPlace>& places);
Result<std::vector<LeaseAnswer>> keep_leases(const std::vector<hosts::HostPlace>& places,
                                             std::int64_t ends_ms, std::int64_t idle_s = -1);
Result<std::vector<LeaseAnswer>> hold_leases(const std::vector<hosts::HostPlace>& places,
                                             std::int64_t seconds);

}  // namespace lockstep::rent
