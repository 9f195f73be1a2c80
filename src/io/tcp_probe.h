// TCP's own probes: how one notices a machine that vanished without a word. A process that hangs,
// even a stopped one, answers them: its kernel does.
#pragma once

#include <chrono>

namespace lockstep::io {

// `most` probes in a row that nobody answers, one every `every`, and the connection is broken. They
// begin when it has been idle for `idle`, which may have been long before.
struct ProbePlan {
  std::chrono::seconds idle;
  std::chrono::seconds every;
  int most = 0;
};
void probe_peer(int fd, const ProbePlan& plan);

// As for a client that would rather try again: 20 s, also where sent data is not acknowledged.
void probe_server(int fd);

// For a client's socket: small requests go out at once, and probe_server().
void tune_client(int fd);

// Data is under way that was sent again and again, and nothing has come back for `patience`. (While
// data is under way there are no probes.)
bool ignores_data(int fd, std::chrono::milliseconds patience);

}  // namespace lockstep::io
