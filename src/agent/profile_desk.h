// Decides what the profilers of this node's ranks are told: which processes ask, which one gets the
// order of `lockstep profile`, and once. Pure: given messages, senders and times.
#pragma once

#include "base/error.h"
#include "codec/kineto.h"
#include "io/loop.h"
#include "status/profile_answer.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::agent {

class ProfileDesk {
 public:
  // A process that sent a message, by its socket's name.
  struct Sender {
    std::string name;
    int rank = 0;
  };

  // Returns the configuration for a process that polls; empty: none. folder: of the traces.
  std::string on_poll(const Sender& sender, bool idle, const std::string& folder, io::TimePoint now,
                      std::int64_t unix_ms);
  // Notes that a process registers. Returns how many processes of its rank have.
  int on_hello(const Sender& sender, io::TimePoint now);

  // Begins the profile `id` of the wished ranks in `here`. Returns false if the profile had begun
  // before, or if no wished rank is in `here`. already_exists: another profile is being taken.
  // invalid_input: a wish without an id or a length.
  Result<bool> begin(std::int64_t id, const status::ProfileWish& wish, const std::vector<int>& here,
                     io::TimePoint now, std::int64_t unix_ms);
  // The command has its files, or does not want them any more.
  void end(std::int64_t id);
  // The attempt is over: none of its processes asks or writes a trace again.
  void forget();

  // Returns the ranks of a profile; empty: not known, or over. alive: ranks with a process. The
  // command calls this every 20 s or more often; a profile that nobody looks at is over.
  std::vector<status::RankProfile> ranks(std::int64_t id, const std::vector<int>& alive,
                                         io::TimePoint now);

 private:
  struct Client {
    std::string name;
    io::TimePoint last;
    bool idle = true;
  };
  Client& meet(const Sender& sender, io::TimePoint now);
  // Returns the process whose profile counts. A script may start others that also load PyTorch, as
  // for a data loader, but the one that trains loads it first. nullptr: no process asks.
  const Client* chosen(int rank, io::TimePoint now) const;

  std::map<int, std::vector<Client>> clients_;  // by rank, in the order of their first message
  std::int64_t id_ = 0;                         // of the newest profile
  bool taken_ = false;                          // it is not over
  bool lost_ = false;                           // its processes have ended
  io::TimePoint until_;
  io::TimePoint looked_;  // when the command last asked for the ranks
  status::ProfileWish wish_;
  std::int64_t start_ms_ = 0;    // Unix time at which a profile by time begins
  std::map<int, bool> ordered_;  // the profile's ranks: has a process got the order?
};

}  // namespace lockstep::agent
