// Checks hosts: hardware, software, latency and clock offset.
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
  // The name on hosts of the project whose Python is asked for. Empty: none.
  std::string project = {};
  bool repair = false;  // removes leftovers of killed clients there
};

struct HostCheck {
  std::string name;
  std::string where;          // "me@10.0.0.5"
  std::string error = {};     // begins with the host's name; empty: the host was reached
  double latency_ms = 0;      // round trip, the median of several
  double clock_ahead_ms = 0;  // relative to this machine's clock; negative: behind
  double clock_error_ms = 0;  // the bound of the error of clock_ahead_ms
  host::Facts facts = {};
  std::vector<std::string> repaired = {};  // removed leftovers, in words
};

// Returns one result per host, in the order of the request. Prints nothing but notices about hosts
// that do not answer. Fails only if this process has too few descriptors: trouble with a host is in
// HostCheck::error.
Result<std::vector<HostCheck>> check_hosts(const CheckRequest& request);

// Returns how far a remote clock is ahead of this machine's clock, in milliseconds. there_ns: the
// reading of the remote clock. asked_at_ms: Unix time of the question by this machine's clock.
// Assumes that the question took half of the round trip. Pure.
double clock_ahead_ms(std::int64_t there_ns, double asked_at_ms, double round_trip_ms);

// Reads the final answer of `lockstep host-facts` into `check`. Returns false if the answer is not
// valid. Pure.
bool take_answer(std::string_view text, HostCheck& check);

}  // namespace lockstep::hosts
