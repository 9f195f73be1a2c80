// torchelastic's event records (--event-log-handler console): one JSON object per line, made by a
// pure function.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::status {

struct Event {
  enum class Source { agent, worker };

  // RENDEZVOUS, ASSIGN_WORKER_RANKS (both with duration_ms), START, SUCCEEDED, FAILED, TERMINATED.
  std::string state;
  Source source = Source::agent;
  std::int64_t timestamp_ms = 0;  // torchrun leaves this at 0

  std::string run_id;
  std::optional<int> group_rank;
  std::string role = "default";
  std::string hostname;
  std::int64_t total_run_time_s = 0;
  std::string rdzv_backend;
  std::optional<std::string> raw_error;  // the failed worker's error record, JSON text
  int agent_restarts = 0;
  std::optional<double> duration_ms;
  std::optional<int> group_world_size;
  std::string entry_point;

  struct Worker {
    int global_rank = 0;
    std::string id;  // pid as text
    int local_rank = 0;
    int role_rank = 0;
    int role_world_size = 0;
    std::optional<int> exit_code;
    std::optional<pid_t> pid;
  };
  std::optional<Worker> worker;  // nullopt: an event of the node
};

// Returns one line without its newline, spaced like Python's json.dumps() and in ASCII.
std::string event_json(const Event& event);

}  // namespace lockstep::status
