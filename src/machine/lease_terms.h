// What a rented machine is told about its own end, and what it says of itself, as JSON between
// client and machine. Pure.
#pragma once

#include "base/error.h"
#include "cloud/guard_timer.h"
#include "codec/json.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::machine {

using cloud::NoticeSource;

struct LeaseTerms {
  std::int64_t ends_ms = 0;   // Unix time by the client's clock: the latest end
  std::int64_t now_ms = 0;    // the client's clock when it says so: only the difference counts
  std::int64_t idle_s = 600;  // ends after so long without work; 0: never
  cloud::MachineEnding ending = cloud::MachineEnding::poweroff;
  NoticeSource notice = NoticeSource::none;
  std::string metadata = {};  // "http://169.254.169.254"; empty: the usual one
};

// What the machine says (`lockstep host-lease status`).
struct LeaseState {
  enum class Phase { none, running, stopping_jobs, ending };

  Phase phase = Phase::none;
  std::int64_t left_ms = 0;        // until the latest end
  std::int64_t idle_ms = 0;        // for so long nothing has worked
  std::int64_t idle_limit_ms = 0;  // 0: no limit
  std::int64_t held_ms = 0;        // being idle does not end it for so long
  int jobs = 0;                    // of ours, running or waiting
  int sessions = 0;                // of people, and commands of clients
  int gpu_percent = -1;            // of the busiest GPU; -1: not asked, or not known
  bool watched = false;            // its daemon lives; else only its timer ends it
  bool sudo = true;                // it may end itself
  std::string notice = {};         // it will be taken away: "terminate 2026-11-23T06:00:00Z"
  std::int64_t notice_ms = 0;      // Unix time by its clock when it was noticed
  std::string why = {};            // it is ending: "idle for 600 s", "its lease is over"
};

nlohmann::ordered_json to_json(const LeaseTerms& terms);
Result<LeaseTerms> terms_from_json(const nlohmann::json& json);
nlohmann::ordered_json to_json(const LeaseState& state);
Result<LeaseState> lease_state_from_json(const nlohmann::json& json);

}  // namespace lockstep::machine
