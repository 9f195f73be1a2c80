// The socket through which commands on the same machine ask a running agent what its ranks do. Only
// the agent may read its workers' memory, so `lockstep why` must ask the agent. Speaks HTTP.
//
// The socket has an abstract name, so that no agent leaves a file behind, however it ends. Both
// ends check that the other one runs as the same user, or as root.
#pragma once

#include "base/error.h"
#include "http/server.h"
#include "io/fd.h"
#include "io/loop.h"

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::status {

// What the name of a socket says. Other users can read these names.
struct JobSocketName {
  pid_t pid = 0;    // the process that the user started (the guardian)
  std::string job;  // the id of a supervised job; empty: a plain `lockstep run`
  // Tells agents of the same pid apart: containers may share the network, and have their own pids.
  std::string mark = {};
};

// "4711-9f3a2b1c.train-7" and "4711-9f3a2b1c". parse: nullopt for other names.
std::string print_socket_name(const JobSocketName& name);
std::optional<JobSocketName> parse_socket_name(std::string_view text);

// The agents of a job ("9f3a2b1c"), or of a row of a sweep ("9f3a2b1c[12]").
struct AgentsWord {
  std::string job;
  std::string variable;  // NAME=VALUE, which the agent's environment must have; empty: any agent
};
AgentsWord read_agents_word(const std::string& word);

// The agent's end.
class JobSocket {
 public:
  // Answers requests of this user and of root, and closes the connections of others.
  static Result<std::unique_ptr<JobSocket>> open(io::Loop& loop, const JobSocketName& name,
                                                 http::Handlers handlers);

 private:
  explicit JobSocket(std::unique_ptr<http::Server> server) : server_(std::move(server)) {}

  std::unique_ptr<http::Server> server_;
};

inline constexpr std::size_t kMostAgents = 1024;
// Returns the names of this user's agents, at most `most`, from the text of /proc/net/unix. Pure.
std::vector<JobSocketName> sockets_in(std::string_view proc_net_unix, uid_t user,
                                      std::size_t most = kMostAgents);

// Sends GET `target` and returns the body of the answer, at most 4 MiB. unavailable: no agent
// listens. timeout: no whole answer within `limit`. not_found: an agent of another version, which
// does not know the target. denied: the socket is of another user.
Result<std::string> ask_agent(const JobSocketName& name, std::string_view target,
                              io::Duration limit);

// Asks all agents of one job on this machine: finds the agents of a supervised job by the job's id,
// and the agent of a plain run by its pid. For an agent that does not answer within `limit`, such
// as a stopped one, the result has `late`, or nothing if `late` is empty. variable: as AgentsWord.
std::vector<std::string> ask_agents(const JobSocketName& of, std::string_view target,
                                    io::Duration limit, const std::string& late = {},
                                    const std::string& variable = {});

// An agent, as long as lives() is true. Before that, the pid may mean another process.
struct AgentProcess {
  pid_t pid = 0;
  io::Fd connection = {};
  io::Fd process = {};  // a pidfd

  bool lives() const;
};
// Returns an agent of the job on this machine, chosen as for ask_agents(). nullopt: none runs here.
// variable: as AgentsWord. Errors: timeout (it does not accept connections), invalid_input (agents
// of the job are in several containers).
Result<std::optional<AgentProcess>> find_agent(const JobSocketName& of,
                                               const std::string& variable = {});

}  // namespace lockstep::status
