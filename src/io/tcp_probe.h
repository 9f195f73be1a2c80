// TCP's own probes notice a machine that vanished without a word. They do not notice a process that
// hangs or is stopped: its kernel still answers them.
#pragma once

#include <chrono>

namespace lockstep::io {

// When nothing has come for `idle`, a probe is sent every `every`; when `most` in a row stay
// unanswered, the connection is broken. Idle time from before the call counts.
struct ProbePlan {
  std::chrono::seconds idle;
  std::chrono::seconds every;
  int most = 0;
};
void probe_peer(int fd, const ProbePlan& plan);

// For clients, which rather try again than wait: 20 s, also while sent data is unacknowledged.
void probe_server(int fd);

// For a client's socket: turns Nagle's delay off for small requests, and calls probe_server().
void tune_client(int fd);

// Whether data was sent again and again, and nothing has come back for `patience`. Probes do not
// cover this: TCP sends none while data is under way.
bool ignores_data(int fd, std::chrono::milliseconds patience);

}  // namespace lockstep::io
