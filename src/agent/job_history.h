// The way that a job took on this node: its attempts, and why each of them ended. Pure: the driver
// tells what happened and when (unix time in milliseconds); --report, the restart line and the last
// line are made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

// What first made the workers of an attempt stop, as this node saw it.
enum class AttemptEnd {
  none,    // all of its workers ended with 0, or it still runs
  worker,  // one of this node's workers failed
  nodes,   // the other nodes: a worker failed there, or a node is gone or new
  signal,  // somebody told this node to stop
  watchdog,
  start,  // a worker could not be started
};
std::string_view attempt_end_word(AttemptEnd end);  // "worker"; "success" for none

struct AttemptStart {
  std::int64_t at_ms = 0;
  int restarts = 0;  // that the job had used up: the workers' TORCHELASTIC_RESTART_COUNT
  int nodes = 1;
  int group_rank = 0;
  int first_rank = 0;
  int workers = 1;
  int world_size = 1;
};

struct Attempt {
  AttemptStart start;
  bool counted = false;  // this node started it as a restart; false: the first, or nodes changed
  std::optional<std::int64_t> end_ms;  // when the last of its workers had ended
  AttemptEnd end = AttemptEnd::none;
  std::string why;      // one line; empty for success
  std::string log_dir;  // empty: none
};

// A round that was made because a node went or came.
struct NodeChange {
  std::int64_t at_ms = 0;
  std::string why;
  int nodes_before = 0;
  int nodes_after = 0;
};

class JobHistory {
 public:
  // A job that goes on for months keeps its latest ones.
  static constexpr std::size_t kMostKept = 1000;

  explicit JobHistory(std::int64_t start_ms) : start_ms_(start_ms) {}

  void attempt_started(const AttemptStart& start);
  void logs_in(const std::string& dir);  // of the attempt under way
  // The attempt under way ends, and why. Of several reasons the first one counts, unless a later
  // one overrules it (a worker failed, and then it turned out that a node was lost).
  void attempt_ends(AttemptEnd end, const std::string& why, bool overrules = false);
  // The last of its workers has ended; also where it never had any.
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

// "8.2 s", "3 min 12 s", "2 d 3 h 4 min".
std::string duration_text(std::int64_t ms);

// Whether the end of the job is worth a line of its own: it took longer than 10 s, or it was
// started more than once.
bool is_worth_a_line(const JobHistory& history);

// "the job succeeded after 3 min 12 s, with 2 restarts; logs: /tmp/x". outcome: as --report has it.
// logs: where they are, or why there are none.
std::string last_line(const JobHistory& history, std::string_view outcome, std::string_view logs);

}  // namespace lockstep::agent
