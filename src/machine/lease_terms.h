// The terms of a rented machine's end, and the machine's report about itself, as JSON between
// client and machine. Pure.
#pragma once

#include "base/error.h"
#include "cloud/guard_timer.h"
#include "codec/json.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::codec {
class JsonFields;
}

namespace lockstep::machine {

using cloud::NoticeSource;

struct LeaseTerms {
  std::int64_t ends_ms = 0;   // Unix time by the client's clock: the latest end
  std::int64_t now_ms = 0;    // the client's clock when sent: only the difference counts
  std::int64_t idle_s = 600;  // end after this long without work; 0: never
  cloud::MachineEnding ending = cloud::kPoweroff;
  NoticeSource notice = NoticeSource::none;
  std::string metadata = {};  // base URL of the metadata service; empty: the usual one
};

// The report of `lockstep host-lease status`.
struct LeaseState {
  enum class Phase { none, running, stopping_jobs, ending };

  Phase phase = Phase::none;
  std::int64_t left_ms = 0;        // until the latest end
  std::int64_t idle_ms = 0;        // time without work so far
  std::int64_t idle_limit_ms = 0;  // 0: no limit
  std::int64_t held_ms = 0;        // time for which the idle limit is suspended
  int jobs = 0;                    // of this user, running or waiting
  int sessions = 0;                // logins, and commands of clients
  int gpu_percent = -1;            // of the busiest GPU; -1: unknown
  bool watched = false;            // the daemon lives; otherwise only the timer ends the machine
  bool sudo = true;                // the machine may end itself
  // the provider will take the machine away: "terminate 2026-11-23T06:00:00Z"
  std::string notice = {};
  std::int64_t notice_ms = 0;  // Unix time by the machine's clock when the notice came
  std::string why = {};        // why the machine is ending: "idle for 600 s", "its lease is over"
};

nlohmann::ordered_json to_json(const LeaseTerms& terms);
Result<LeaseTerms> terms_from_json(const nlohmann::json& json);
// Refuses terms without an end in the next 400 days.
Status check_terms(const LeaseTerms& terms);
nlohmann::ordered_json to_json(const LeaseState& state);
Result<LeaseState> lease_state_from_json(const nlohmann::json& json);

// The members of terms inside another struct. Their values are not checked.
void fields(codec::JsonFields& io, LeaseTerms& terms);

}  // namespace lockstep::machine
