// First contact with new machines. Waits until the machines answer, accepts only the host keys made
// for them, compares each machine with the order, and grants each machine a lease. Contacts all
// machines at the same time, each at an independent pace. Blocks. Ctrl-C ends the contact with
// Errc::canceled.
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

// A machine to contact.
struct RentedHost {
  std::string name;     // for people: "gpus-0"
  std::string address;  // numeric
  int port = 22;
  std::string user;
  std::string key_path;         // path of the private key to log in with
  std::string host_public_key;  // "ssh-ed25519 AAAA...", as in user data
  std::string told_key = {};    // the image's own host key, if known
};

// What happens to a machine during first contact.
struct ContactStep {
  enum class Kind {
    logs_in,       // sshd answers
    own_host_key,  // the image made a host key, and the provider knows the same key
    checked,       // the log-in worked; the health check runs
    gets_lease,    // the machine is healthy
    other,
  };
  Kind kind = Kind::other;
  std::string text = {};  // for people: "sshd does not answer yet"
};

struct FirstContactRequest {
  std::vector<RentedHost> hosts;
  std::string pins;  // the cluster's file of host keys, updated here before and after each contact
  machine::HealthWish wish;
  machine::LeaseTerms lease;                     // now_ms is set here
  std::chrono::seconds patience{15 * 60};        // until a machine must be reached
  std::chrono::milliseconds silent_for{60'000};  // after this a note says what may block the port
  // How far the provider's clock is ahead of this machine's; 0: unknown.
  std::int64_t provider_ahead_ms = 0;
  // The longest tolerance for a finding that may pass by itself.
  std::chrono::milliseconds health_patience{std::chrono::minutes(5)};
  int lost_fd = -1;  // readable: a machine is gone, so stop waiting
  // Never called twice in a row with the same text for a machine.
  std::function<void(std::size_t host, const ContactStep& step)> on_step = {};
};

struct FirstContact {
  enum class Outcome {
    ready,        // healthy, with a running lease
    unreachable,  // no answer within `patience`, or lost on the way
    wrong_host,   // shows another host key; must not be contacted again
    sick,         // unhealthy, see `findings`
    no_lease,     // the lease could not start; sudo may ask for a password
  };

  Outcome outcome = Outcome::unreachable;
  std::string error = {};  // one line with the machine's name; empty if ready
  std::vector<machine::HealthFinding> findings = {};
  std::string host_public_key = {};  // the key that is pinned now
  bool fresh_key = false;            // the key from user data has been replaced
  std::int64_t answered_ms = 0;      // Unix time when sshd answered first
  bool silent = false;               // no SSH server answered within `patience`
};

// Returns one result for each host, in the same order.
Result<std::vector<FirstContact>> make_first_contact(const FirstContactRequest& request);

// Returns the pause before the next try, given the time since the first try. Pure.
std::chrono::milliseconds next_try(std::chrono::milliseconds waited);

// A machine's answer about its lease.
struct LeaseAnswer {
  machine::LeaseState state = {};
  std::string error = {};  // why there is no answer; empty: an answer came
};

// Ask machines about the leases, all at the same time. Each function returns one answer for each
// place, in the same order; canceled: by a signal. keep_leases sets a new end (Unix time) and, if
// not negative, a new idle limit. hold_leases keeps machines from ending as idle for that many
// seconds.
Result<std::vector<LeaseAnswer>> ask_leases(const std::vector<hosts::HostPlace>& places);
Result<std::vector<LeaseAnswer>> keep_leases(const std::vector<hosts::HostPlace>& places,
                                             std::int64_t ends_ms, std::int64_t idle_s = -1);
Result<std::vector<LeaseAnswer>> hold_leases(const std::vector<hosts::HostPlace>& places,
                                             std::int64_t seconds);

}  // namespace lockstep::rent
