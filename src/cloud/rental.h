// A rental, as the journal keeps it: the wish, all attempts, and their machines until each was seen
// gone. Values, and their JSON.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/provider.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

// The value of Held::node for a machine that no attempt has requested. Such a machine is terminated
// at once.
inline constexpr int kSurplus = -1;

// A machine of a rental, as last seen.
struct Held {
  Machine machine;
  int node = 0;
  std::string host_key = {};  // pinned at the first contact; "": not contacted yet
  std::int64_t since_ms = 0;  // Unix time when billing began
  std::int64_t end_ms = 0;    // Unix time when the provider agreed to terminate; 0: not asked
  std::int64_t gone_ms = 0;   // Unix time of its end, once seen gone; 0: not yet
};

struct Attempt {
  enum class State {
    asked,     // the launch may be under way
    unknown,   // no answer: machines may exist
    refused,   // no machine exists
    answered,  // the machines exist
    running,   // all machines are up
    ending,    // the machines are being terminated
    gone,      // all machines were seen gone
  };

  int number = 1;
  int node = 0;  // the first node's number
  int count = 1;
  Offer offer;
  Micros per_hour = 0;         // of one machine, all in, at launch
  std::int64_t minimum_s = 0;  // billed at least, per machine
  LaunchCall call = {};        // emptied once it cannot be needed again
  State state = State::asked;
  std::int64_t asked_ms = 0;
  std::int64_t answered_ms = 0;
  std::int64_t ended_ms = 0;  // refused or gone
  std::string code = {};      // the refusal's, or why the attempt ended
  std::string message = {};
  std::vector<Held> machines = {};

  bool open() const { return state != State::refused && state != State::gone; }
  // Returns whether the machines of the launch are unknown.
  bool unanswered() const { return state == State::asked || state == State::unknown; }
};

inline constexpr std::string_view kEverybody = "0.0.0.0/0";  // CIDR

// The terms of a rental: time, money and access to its machines.
struct Terms {
  std::int64_t lifetime_s = 0;  // 0: none
  std::int64_t autostop_s = 600;
  std::int64_t hold_s = 1800;
  std::optional<Micros> budget = {};
  std::string allow_from = {};  // CIDR
  std::string image = {};
  std::string guard = {};       // "": none, "here", or a host
  std::string guard_from = {};  // CIDR of the guard host, for machines that need a guard
  bool own_address = false;     // allow_from is this client's address, also after a move

  bool open_to_all() const { return allow_from == kEverybody; }
  // Returns the networks that may reach port 22: CIDRs separated by commas.
  std::string allowed(Ending ending) const;
};

struct Rental;
// Returns the networks of a firewall rule that several rentals share. A rental counts if it has
// machines there, or if a launch may begin just now. region: "" for all regions. ending: the
// provider's.
std::string allowed_by(const std::vector<Rental>& rentals, std::string_view provider,
                       std::string_view region, Ending ending);

struct Rental {
  std::string id;       // 20 of a-z0-9, the machines' tag lockstep:intent
  std::string cluster;  // the user's name for the cluster
  std::string owner;
  Wish wish = {};
  Terms terms = {};
  std::int64_t created_ms = 0;
  std::int64_t ends_ms = 0;    // end of the lease; 0: not known before there is a price
  bool wanted = true;          // false: all machines must end
  std::int64_t closed_ms = 0;  // Unix time when nothing was left; 0: open
  // In the journal of a guard on another machine: Unix time of the last news from the client.
  std::int64_t told_ms = 0;
  std::string user_data = {};     // first-boot text with the host key (user_data.h)
  std::string start_script = {};  // the same for containers
  std::string public_key = {};
  std::vector<Attempt> attempts = {};

  // Returns machines that may be alive.
  std::vector<const Held*> live() const;
  bool settled() const;  // no attempt is open
};

// Returns whether every node of the newest gang runs.
bool is_whole(const Rental& rental);
// Returns whether the newest gang can never be whole: a machine has ended or is unusable.
bool is_lost(const Rental& rental);
// Returns whether a machine has ended, or will never run.
bool never_runs(const Machine& machine);
// Returns whether an attempt of the rental has this machine.
bool holds(const Rental& rental, const std::string& id);

// Returns whether there may be machines alive that no list has shown yet.
bool has_unanswered(const Rental& rental);
// Returns the cost of all machines until now, or until their end.
Micros cost_so_far(const Rental& rental, std::int64_t now_ms);
// Returns the time at which billing of the first machine began. now_ms: no machine was ever billed.
std::int64_t began_ms(const Rental& rental, std::int64_t now_ms);
Micros rate_now(const Rental& rental);  // hourly rate of machines that are alive

// Returns the time at which a provider itself terminates the first machine, whatever the lease
// says. 0: never. fixed: whether a provider of that name keeps the end set at launch
// (Traits::fixed_end).
std::int64_t fixed_end_ms(const Rental& rental,
                          const std::function<bool(std::string_view provider)>& fixed);

// Returns the end of the lease: after the lifetime, which counts from the first machine (began_ms),
// or once the budget is used up, whichever is first. nullopt: neither is set.
std::optional<std::int64_t> lease_end(const Terms& terms, Micros per_hour, Micros spent,
                                      std::int64_t began_ms, std::int64_t now_ms);

std::string rental_json(const Rental& rental);
Result<Rental> parse_rental(std::string_view json);

}  // namespace lockstep::cloud
