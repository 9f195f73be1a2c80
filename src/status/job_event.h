// The events of a job, as seen by the agents. One event is one line of JSON. docs/events.md lists
// the fields and kinds. Later versions only add fields and kinds. Pure.
#pragma once

#include "base/error.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::status {

enum class JobEventKind {
  other,  // of a later version
  started,
  rendezvous_begun,
  round_formed,
  ranks_started,
  first_output,  // of a rank
  training,
  waiting,
  quiet,
  hung,
  hang_over,
  straggler,       // a rank makes the others wait
  straggler_over,  // no longer
  rank_ended,      // with exit code 0, or after a stop
  failed,          // a rank failed by itself
  gpu_fault,       // the kernel's log tells of a fault of a GPU
  nodes_changed,
  restarting,
  stopping,
  workers_ended,
  ended,
};
inline constexpr std::array<std::string_view, 21> kEventWords = {
    "other",        "started",       "rendezvous_begun", "round_formed", "ranks_started",
    "first_output", "training",      "waiting",          "quiet",        "hung",
    "hang_over",    "straggler",     "straggler_over",   "rank_ended",   "failed",
    "gpu_fault",    "nodes_changed", "restarting",       "stopping",     "workers_ended",
    "ended"};
std::string_view event_word(JobEventKind kind);

struct JobEvent {
  std::int64_t time_ms = 0;  // unix time
  JobEventKind kind = JobEventKind::other;
  std::string agent = {};        // tells runs apart: a random word of each `lockstep run`
  std::int64_t number = 0;       // counts the events of an agent, from 1
  std::int64_t attempt = 0;      // 0: before the first
  std::string node = {};         // the node's name
  std::optional<int> rank = {};  // nullopt: about the node or the job
  std::string words = {};        // one printable line for a person; may be empty
  std::map<std::string, double> numbers = {};  // "world", "first_rank", "exit_code" ...

  // Returns a number, or `otherwise`.
  double number_of(const std::string& name, double otherwise = 0) const;
};

// Returns one line of JSON without its newline, at most 4096 bytes: a writer to a pipe may rely on
// whole lines.
std::string job_event_json(const JobEvent& event);

// Reads a line of another version, or of a file that anybody may have changed: all texts become
// printable lines. An unknown kind becomes `other`, its word the first of `words`. Fails with
// Errc::corrupt.
Result<JobEvent> read_job_event(std::string_view line);

// Returns the line that a person reads: "2026-11-26 14:03:07  node-1  attempt 1  hung  WORDS".
std::string job_event_text(const JobEvent& event);

}  // namespace lockstep::status
