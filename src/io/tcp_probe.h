// TCP's own probes, which detect a machine that vanished silently. They do not detect a hanging or
// stopped process: its kernel still answers.
#pragma once

#include <chrono>

namespace lockstep::io {

// Without data for `idle`, a probe is sent every `every`. After `most` unanswered probes in a row
// the connection is broken. Idle time before the call counts.
struct ProbePlan {
  std::chrono::seconds idle;
  std::chrono::seconds every;
  int most = 0;
};
void probe_peer(int fd, const ProbePlan& plan);

// For clients, which would rather reconnect than wait. Detects a dead server in 20 s, also while
// sent data is unacknowledged.
void probe_server(int fd);

// For a client's socket: turns off Nagle's delay for small requests, and calls probe_server().
void tune_client(int fd);

// Returns whether data was retransmitted repeatedly and nothing has come back for `patience`.
// Probes do not cover this: TCP sends none while data is unacknowledged.
bool ignores_data(int fd, std::chrono::milliseconds patience);

}  // namespace lockstep::io
