// What the journal knows of one rental: the wish, every attempt to fulfil it, and every machine
// that came of it until it was seen gone. Values, and their JSON.
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

// Held::node of a machine that no attempt has asked for: it is ended at once.
inline constexpr int kSurplus = -1;

// A machine of ours, as last seen.
struct Held {
  Machine machine;
  int node = 0;
  std::string host_key = {};  // that it is pinned to since the first contact; "": not contacted
  std::int64_t since_ms = 0;  // billed from
  std::int64_t end_ms = 0;    // the provider has agreed to end it; 0: was not asked
  std::int64_t gone_ms = 0;   // seen gone; 0: not yet. Then: when it ended, as far as is known
};

struct Attempt {
  enum class State {
    asked,     // the call may be under way
    unknown,   // no answer: it may exist
    refused,   // nothing came of it
    answered,  // its machines exist
    running,   // all of them are up
    ending,    // they are to end
    gone,      // they were seen gone
  };

  int number = 1;
  int node = 0;  // the first node's number
  int count = 1;
  Offer offer;
  Micros per_hour = 0;         // of one machine, all in, as it was at launch
  std::int64_t minimum_s = 0;  // is billed at least for each machine
  LaunchCall call = {};        // emptied once it can't be needed again
  State state = State::asked;
  std::int64_t asked_ms = 0;
  std::int64_t answered_ms = 0;
  std::int64_t ended_ms = 0;  // refused or gone
  std::string code = {};      // of the refusal, or why it ended
  std::string message = {};
  std::vector<Held> machines = {};

  bool open() const { return state != State::refused && state != State::gone; }
  // It is not known what the launch has made.
  bool unanswered() const { return state == State::asked || state == State::unknown; }
};

const char* attempt_state_name(Attempt::State state);

inline constexpr std::string_view kEverybody = "0.0.0.0/0";  // CIDR

// What was agreed about time and money.
struct Terms {
  std::int64_t lifetime_s = 0;  // 0: none
  std::int64_t autostop_s = 600;
  std::int64_t hold_s = 1800;
  std::optional<Micros> budget = {};
  std::string allow_from = {};  // CIDR
  std::string image = {};
  std::string guard = {};  // "": none, "here", or a host
  std::string guard_from =
      {};                    // CIDR of that host, which may reach machines that it guards; "": none
  bool own_address = false;  // allow_from is where we were: it follows us
  bool watched = false;      // that host watches its job, and reaches all of its machines

  bool open_to_all() const { return allow_from == kEverybody; }
  // Who may reach the machines' port 22: CIDRs, with commas where there are several.
  std::string allowed(Ending ending) const;
};

struct Rental;
// The same of one rule for all of these that have machines there, or may get some just now. region:
// "" for all of them. ending: the provider's.
std::string allowed_by(const std::vector<Rental>& rentals, std::string_view provider,
                       std::string_view region, Ending ending);

struct Rental {
  std::string id;       // the intent: 20 of a-z0-9
  std::string cluster;  // the user's name for it
  std::string owner;
  Wish wish = {};
  Terms terms = {};
  std::int64_t created_ms = 0;
  std::int64_t ends_ms = 0;    // the lease; 0: not known before there is a price
  bool wanted = true;          // false: all that there is must end
  std::int64_t closed_ms = 0;  // nothing is left; 0: open
  // In the journal of a guard on another machine: when its client was last heard to work on it.
  std::int64_t told_ms = 0;
  // Of this rental, on the user's machine: host and user keys, first contact.
  std::string user_data = {};
  std::string start_script = {};  // for containers, in its place
  std::string public_key = {};
  std::vector<Attempt> attempts = {};

  // Machines that may be alive.
  std::vector<const Held*> live() const;
  bool settled() const;  // no attempt is open
};

// Whether machines may be alive that are not known yet.
bool has_unanswered(const Rental& rental);
// What all its machines have cost until `now`, or until they were gone.
Micros cost_so_far(const Rental& rental, std::int64_t now_ms);
// When its first machine began to be billed; now: it has had none.
std::int64_t began_ms(const Rental& rental, std::int64_t now_ms);
Micros rate_now(const Rental& rental);  // an hour, of what is alive

// When a provider ends the first machine that is alive, whatever is agreed with the machine later.
// fixed: the names of providers whose ends stay as they were at launch (Traits::fixed_end). 0:
// none.
std::int64_t fixed_end_ms(const Rental& rental,
                          const std::function<bool(std::string_view provider)>& fixed);

// The lease: the lifetime, which counts from the first machine on (began_ms), or what the budget
// still pays for, whichever ends first. nullopt: neither is set.
std::optional<std::int64_t> lease_end(const Terms& terms, Micros per_hour, Micros spent,
                                      std::int64_t began_ms, std::int64_t now_ms);

std::string rental_json(const Rental& rental);
Result<Rental> parse_rental(std::string_view json);

}  // namespace lockstep::cloud
