// The events of the job as this node sees it: kept for commands that ask, appended to --events, and
// told to the receivers of notices. Adds up where the time went.
#pragma once

#include "agent/event_file.h"
#include "agent/node.h"
#include "agent/notice.h"
#include "agent/notifier.h"
#include "agent/worst_straggler.h"
#include "http/request_parse.h"
#include "io/loop.h"
#include "looks/fold.h"
#include "looks/redo_watch.h"
#include "looks/verdict.h"
#include "looks/world_news.h"
#include "rendezvous/round.h"
#include "status/event_ring.h"
#include "status/goodput.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::agent {

class Chronicle {
 public:
  using Kind = status::JobEventKind;
  using Numbers = std::map<std::string, double>;

  // reaped: see Notifier.
  Chronicle(io::Loop& loop, const Node& node, proc::Containment& containment,
            std::function<void()> reaped);

  // Opens the file. Fails if it cannot be written at all.
  Status open();

  // --- what happens, each with a line for people
  void rendezvous_begun();
  void round_formed(const rendezvous::Round& round);
  void attempt_started(const rendezvous::Round& round, std::int64_t attempt);
  void rank_ended(int rank, int exit_code);
  void rank_failed(int rank, int exit_code, const std::string& why);
  // A GPU of this node has reported a fault. words: a line, which the log gets too.
  void gpu_fault(const std::string& words);
  // A rank of the job makes the others wait, or does so no longer.
  void straggler(const looks::WorldSlow& slow);
  void straggler_over(int rank, const std::string& words);
  // A new attempt begins after another. counted: against --max-restarts; else the nodes changed.
  void again(bool counted, const std::string& why);
  void stopping(const std::string& why);
  void workers_ended();
  void ended(const std::string& words);

  // A look at the ranks, once a second. printed: the ranks whose output has begun. redo: whether
  // the job repeats steps.
  void on_look(const looks::Fold& fold, const looks::Verdict& verdict,
               const std::vector<int>& printed, const looks::Redo& redo);

  // Answers "/events?after=N".
  http::Response answer(const http::Request& request);
  // Returns the number of the newest event.
  std::int64_t last() const { return ring_.last(); }
  // Returns the latest events for the report.
  std::vector<std::string> latest() { return ring_.latest(kMostInReport, kMostReportBytes); }
  status::Goodput goodput() const { return goodput_.at(io::Clock::now()); }
  // Returns the worst straggler so far. The current one counts once the workers are stopped.
  const std::optional<WorstStraggler::Span>& worst_straggler() const { return slow_.worst(); }
  // Returns whether a notice is under way. The end of the job waits for it, but not for long.
  bool is_telling() const { return notifier_.busy(); }
  void close() { notifier_.close(); }

 private:
  static constexpr std::size_t kMostInReport = 500;
  // Readers of reports take 1 MiB in all.
  static constexpr std::size_t kMostReportBytes = 256UL << 10;

  void note(Kind kind, const std::string& words = {}, std::optional<int> rank = {},
            Numbers numbers = {});
  void note_state(const looks::Verdict& verdict);

  const Node& node_;
  std::string agent_;  // a random word
  std::optional<EventFile> file_;
  status::EventRing ring_;
  status::Goodput goodput_;
  WorstStraggler slow_;
  NoticeChoice choice_;
  Notifier notifier_;
  std::int64_t attempt_ = 0;
  std::optional<int> group_rank_;             // of the last round
  bool stopping_ = false;                     // or no worker runs any more
  std::set<int> printed_;                     // ranks of the attempt whose output has begun
  std::optional<looks::VerdictState> state_;  // of the last look
  bool alarm_ = false;
};

}  // namespace lockstep::agent
