// Asks hosts what they are and have, how far away they are, and what their clocks say.
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
  std::string error = {};     // why it was not reached, with its name; empty: it was
  double latency_ms = 0;      // there and back, the median of several
  double clock_ahead_ms = 0;  // of ours; negative: behind
  double clock_error_ms = 0;  // how far off that may be
  host::Facts facts = {};
  std::vector<std::string> repaired = {};  // what was removed there, in words
};

// One for each host, in their order.
Result<std::vector<HostCheck>> check_hosts(const CheckRequest& request);

// How far a clock is ahead of ours that said `there_ns` in answer to a question of `asked_at_ms`
// (Unix time, ours); its way there is taken for half of the round trip. Pure.
double clock_ahead_ms(std::int64_t there_ns, double asked_at_ms, double round_trip_ms);

// What the host's own `lockstep host-facts` prints at the end of its input, into `check`. False: it
// makes no sense. Pure.
bool take_answer(std::string_view text, HostCheck& check);

}  // namespace lockstep::hosts
