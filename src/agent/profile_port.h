// The socket on which the profilers of this node's ranks ask for orders (--profile), and the folder
// in which they write traces. Answers `lockstep profile`.
#pragma once

#include "agent/profile_desk.h"
#include "agent/sight.h"
#include "agent/worker_spec.h"
#include "base/error.h"
#include "http/server.h"
#include "io/fd.h"
#include "io/loop.h"
#include "launch/launch_config.h"

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

class ProfilePort {
 public:
  // workers: called for each message.
  ProfilePort(io::Loop& loop, const launch::ProfileConfig& config,
              std::function<std::vector<Sight::Target>()> workers);

  // Makes folder and socket, and adds the variables of the workers. Does nothing if the job does
  // not want profiles. A job without a socket goes on: the log says why.
  void open(Environment& workers);
  // Answers the /profile of status/profile_answer.h.
  http::Response answer(const http::Request& request, const std::string& node);
  // All processes of the attempt before have ended.
  void attempt_starts() { desk_.forget(); }
  // Closes the socket, and removes both folders with their content.
  void close();

 private:
  Status make();
  void on_readable();
  bool take_message();
  void reply(const std::string& bytes, const std::string& path) const;
  std::optional<int> rank_of(pid_t pid) const;
  status::ProfileAnswer answer(const status::ProfileQuery& query);

  io::Loop& loop_;
  const launch::ProfileConfig& config_;
  std::function<std::vector<Sight::Target>()> workers_;
  ProfileDesk desk_;
  std::string folder_;   // of the sockets; empty: there is none
  std::string traces_;   // the same folder, or one that other machines see
  std::string problem_;  // why there is no socket
  io::Fd socket_;
  std::unique_ptr<io::Watch> watch_;
  io::TimePoint counted_since_;
  int counted_ = 0;  // messages since then
  io::Timer rest_;   // after many messages
};

}  // namespace lockstep::agent
