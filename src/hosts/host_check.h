// Checks hosts: their hardware and software, the latency, and the clock offset.
#pragma once

#include "base/error.h"
#include "host/facts.h"
#include "hosts/command_run.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

struct CheckRequest {
  std::vector<HostPlace> hosts;
  std::string project = {};  // its name on hosts, of which the Python is asked; empty: none
  bool repair = false;       // removes what killed clients left there
};

struct HostCheck {
  std::string name;
  std::string where;          // "me@10.0.0.5"
  std::string error = {};     // with the host's name; empty: the host was reached
  double latency_ms = 0;      // there and back, the median of several
  double clock_ahead_ms = 0;  // of ours; negative: behind
  double clock_error_ms = 0;  // how far off that may be
  host::Facts facts = {};
  std::vector<std::string> repaired = {};  // removed leftovers, in words
};

// Returns one result per host, in the order of the request.
Result<std::vector<HostCheck>> check_hosts(const CheckRequest& request);

// Returns how far a remote clock is ahead of ours, in milliseconds. The remote clock read
// `there_ns`; we asked at `asked_at_ms` (Unix time by our clock). Assumes that the question took
// half of the round trip. Pure.
double clock_ahead_ms(std::int64_t there_ns, double asked_at_ms, double round_trip_ms);

// Reads the final answer of `lockstep host-facts` into `check`. Returns false if the answer is not
// valid. Pure.
bool take_answer(std::string_view text, HostCheck& check);

}  // namespace lockstep::hosts
