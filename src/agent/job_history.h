// The course of a job on this node: its attempts, and the reason why each of them ended. Pure: the
// driver reports events with their time (unix time in milliseconds). --report, the restart line and
// the last line are made from this history.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

// The first reason that made the workers of an attempt stop, as this node saw it.
enum class AttemptEnd {
  none,    // all workers exited with 0, or the attempt still runs
  worker,  // one of this node's workers failed
  nodes,   // caused by other nodes: a worker failed there, or a node left or joined
  signal,  // a signal told this node to stop
  hang,    // --on-hang: the ranks stood still
  watchdog,
  start,  // a worker could not be started
};
std::string_view attempt_end_word(AttemptEnd end);  // "worker"; "success" for none

struct AttemptStart {
  std::int64_t at_ms = 0;
  int restarts = 0;  // restarts used up so far: the workers' TORCHELASTIC_RESTART_COUNT
  int nodes = 1;
  int group_rank = 0;
  int first_rank = 0;
  int workers = 1;
  int world_size = 1;
};

struct Attempt {
  AttemptStart start;
  // This node started the attempt as a restart. false: the first attempt, or the nodes changed.
  bool counted = false;
  std::optional<std::int64_t> end_ms;  // time at which the last worker had ended
  AttemptEnd end = AttemptEnd::none;
  std::string why;                       // one line; empty for success
  std::vector<std::string> others = {};  // where this node's ranks were when they were stopped
  std::string log_dir;                   // empty: none
};

// A round that began because a node left or joined.
struct NodeChange {
  std::int64_t at_ms = 0;
  std::string why;
  int nodes_before = 0;
  int nodes_after = 0;
};

class JobHistory {
 public:
  // Limit of attempts and node changes kept, the latest ones. A job may run for months.
  static constexpr std::size_t kMostKept = 1000;

  explicit JobHistory(std::int64_t start_ms) : start_ms_(start_ms) {}

  // Begins an attempt. Also closes the previous one if nothing has yet.
  void attempt_started(const AttemptStart& start);
  void logs_in(const std::string& dir);  // log directory of the current attempt
  // Gives the reason why the current attempt ends. The first reason counts, unless a later one
  // overrules it: a worker failed, and then a node turned out to be lost.
  void attempt_ends(AttemptEnd end, const std::string& why, bool overrules = false);
  // Says where the ranks were when the current attempt was stopped, a sentence each.
  void ranks_were(const std::vector<std::string>& sentences);
  // The last worker has ended. Called even if no worker was started.
  void workers_ended(std::int64_t at_ms);
  void job_ended(std::int64_t at_ms);

  const std::vector<Attempt>& attempts() const { return attempts_; }
  const std::vector<NodeChange>& node_changes() const { return changes_; }
  std::int64_t attempts_total() const { return attempts_total_; }
  std::int64_t node_changes_total() const { return changes_total_; }
  int restarts() const { return attempts_.empty() ? 0 : attempts_.back().start.restarts; }
  std::int64_t start_ms() const { return start_ms_; }
  std::int64_t end_ms() const { return end_ms_; }
  std::int64_t duration_ms() const { return end_ms_ > start_ms_ ? end_ms_ - start_ms_ : 0; }

 private:
  std::int64_t start_ms_;
  std::int64_t end_ms_ = 0;
  std::int64_t attempts_total_ = 0;
  std::int64_t changes_total_ = 0;
  std::vector<Attempt> attempts_;
  std::vector<NodeChange> changes_;
};

// Formats a duration: "8.2 s", "3 min 12 s", "2 d 3 h 4 min".
std::string duration_text(std::int64_t ms);

// Returns whether the end of the job deserves a line of its own: the job ran for more than 10 s, or
// was started more than once.
bool is_worth_a_line(const JobHistory& history);

// "succeeded after 3 min 12 s, with 2 restarts". outcome: the word that --report uses.
std::string how_it_ended(const JobHistory& history, std::string_view outcome);

// Formats the last line: "the job succeeded after 3 min 12 s, with 2 restarts; goodput 91 %
// (training 2 min 55 s); straggler: rank 3 (node n1) for 1 min 5 s; last run 5 min ago: 3 min 40 s,
// goodput 88 %; logs: /tmp/x". logs: the log directory, or the reason why there is none. goodput,
// straggler, last_run: empty if nothing is known.
std::string last_line(const JobHistory& history, std::string_view outcome, std::string_view logs,
                      std::string_view goodput = {}, std::string_view straggler = {},
                      std::string_view last_run = {});

}  // namespace lockstep::agent
