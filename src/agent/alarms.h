// Tells the user what the looks have found: a hang, a wait, a timeout, late answers of flight
// recorders. Keeps the evidence of each hang beside the logs of the attempt.
#pragma once

#include "agent/collectives.h"
#include "agent/hang_alarm.h"
#include "looks/evidence.h"
#include "looks/fold.h"
#include "looks/verdict.h"
#include "looks/world_news.h"

#include <functional>
#include <string>

namespace lockstep::agent {

class Alarms {
 public:
  struct Attempt {
    int number = 0;
    int round = 0;
    std::string folder = {};  // of its logs; empty: evidence is not kept
  };
  // What a look has found.
  struct Found {
    const looks::Verdict& verdict;
    const looks::Fold& fold;  // of all ranks that this node judges
    const looks::Evidence& evidence;
  };

  // node: returns the GPUs and the stacks of all threads of this node's ranks.
  Alarms(Collectives& collectives, std::function<std::string()> node)
      : collectives_(collectives), node_(std::move(node)) {}

  void attempt_started(Attempt attempt);
  void attempt_ends();

  // Takes the look of a node that judges. hearing: see HangAlarm. Returns whether the hang may now
  // be acted on.
  bool feed(const Found& found, io::Duration hearing, io::TimePoint now);
  // The NCCL watchdog of a rank has timed out; -1: not known which. The workers are about to end,
  // so every node keeps its evidence, once an attempt.
  void time_out(int rank, const looks::Fold& fold, const looks::Evidence& evidence);
  // Takes the look of a node that another node judges.
  void feed_judged(const looks::Evidence& evidence) { tell_late(evidence); }
  // Takes an alarm that the judging node has sent.
  void hear(const std::string& leader, const looks::WorldNews& news,
            const looks::Evidence& evidence);

  int count() const { return count_; }               // alarms of this attempt
  const std::string& last() const { return last_; }  // the words of the last alarm
  bool last_is_timeout() const { return last_is_timeout_; }

 private:
  void tell(const Found& found);
  void keep(const std::string& words, const looks::Evidence& evidence);
  void keep_dumps();
  void tell_late(const looks::Evidence& evidence);
  std::string keep_node(const std::string& words);

  Collectives& collectives_;
  std::function<std::string()> node_;
  Attempt attempt_;
  HangAlarm alarm_;
  int files_ = 0;  // of evidence of this attempt
  // The hang was told before the recorders had answered. Another node's may answer first.
  bool owes_words_ = false;
  bool owes_dumps_ = false;
  bool dumps_told_ = false;  // where the dumps of the last evidence are
  bool timed_out_ = false;   // told in this attempt
  int count_ = 0;
  std::string last_;
  bool last_is_timeout_ = false;
};

}  // namespace lockstep::agent
