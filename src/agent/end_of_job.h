// The driver of the Conclusion table (conclusion.h). After the last worker has ended, carries the
// job to its end, tells the outcome and stops the loop.
#pragma once

#include "agent/chronicle.h"
#include "agent/conclusion.h"
#include "agent/job_end.h"
#include "agent/job_history.h"
#include "agent/membership.h"
#include "agent/node.h"
#include "agent/workers.h"
#include "http/server.h"
#include "io/loop.h"
#include "logs/console.h"
#include "proc/containment.h"

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

namespace lockstep::agent {

class EndOfJob {
 public:
  struct Owners {
    io::Loop& loop;
    logs::Console& console;
    proc::Containment& containment;
    Membership& membership;
    Workers& workers;
    JobHistory& history;
    std::unique_ptr<http::Server>& health_port;
    Chronicle& chronicle;
  };

  EndOfJob(const Node& node, Owners owners);

  // Starts the end in the next turn of the loop, since the caller may be a callback of an object
  // that the end destroys. `end` need not hold the failures of the last attempt: an abandoned
  // worker may still end.
  void begin(JobEnd end);
  // The user asks again for the end: skips the wait of the current stage.
  void hurry() { feed(Conclusion::Event::hurry); }
  // Skips all waits from now on. May be called before begin().
  void lose_patience() { feed(Conclusion::Event::no_patience); }

  // Valid once the loop has stopped.
  int exit_code() const { return exit_code_; }

 private:
  void enter();
  void feed(Conclusion::Event event);
  void feed_soon(Conclusion::Event event);
  void carry_out(const Conclusion::Actions& actions);
  void carry_out(const Conclusion::Action& action);
  void terminate_leftovers() const;
  void watch_leftovers();
  void exchange_reports(Conclusion::Duration limit);
  void tell();
  void leave();
  void close();
  void watch_console();

  const Node& node_;
  Owners owners_;
  Conclusion conclusion_;
  io::Timer limit_;
  io::Timer next_;  // of the next look, or of an event fed by feed_soon()
  JobEnd end_;
  std::optional<io::TimePoint> told_;  // when the outcome was told
  std::vector<pid_t> leftovers_;
  std::vector<rendezvous::NodeReport> reports_;  // from all nodes
  int exit_code_ = 1;
};

}  // namespace lockstep::agent
