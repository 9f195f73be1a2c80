// Decides what a follower of a job on hosts does next, from the hosts' answers and the time. Pure.
// The driver in job_follow.cc opens the links, prints the output and hands in every event.
#pragma once

#include "base/backoff.h"
#include "io/loop.h"
#include "job/job_spec.h"
#include "jobs/job.h"
#include "jobs/on_hosts/silence.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct FollowAction {
  enum class Kind {
    // Open a new link to `node`. Its follower starts at the next byte.
    open,
    ask,       // ask for the host's record of the job, over the link of `node`
    cancel,    // cancel the job on `node`, for the `count`th time
    end_node,  // no more output comes from `node`
    ask_gone,  // find out whether silent hosts are gone for good, and call on_gone()
    say,       // warn the user with `text`
    finish,    // print the rest and return
  };
  Kind kind;
  std::size_t node = 0;
  int count = 0;
  std::string text = {};
};
using FollowActions = std::vector<FollowAction>;

class FollowCore {
 public:
  using Ms = std::chrono::milliseconds;

  // steady: the clock for pauses. boot: the clock that includes this machine's sleep, for Silence.
  struct Now {
    io::TimePoint steady;
    Ms boot;
  };
  struct Settings {
    std::string job = {};                 // the job's id
    std::vector<std::string> hosts = {};  // names, node 0 first
    bool to_end = true;
    FollowOptions::OnStop on_stop = FollowOptions::OnStop::leave;
    bool may_be_gone = false;  // ask_gone has an answer
    // Returns what the link of a node does before its follower starts: "logging in".
    std::function<const char*(std::size_t)> doing = {};
  };

  FollowCore(Settings settings, Now now);

  FollowActions start(Now now);
  // The follower on the host has started.
  FollowActions on_started(std::size_t node, Now now);
  // The follower has sent output.
  FollowActions on_output(std::size_t node, Now now);
  // The follower has ended. That says nothing about the job: the host's memory may have run out, or
  // the link there was stopped. Only the record of the job's supervisor counts.
  FollowActions on_follower_end(std::size_t node, int code, int signal, Now now);
  // The host's complete answer to `ask`.
  FollowActions on_record(std::size_t node, std::string_view text, Now now);
  // The link is lost, or the host refuses to start the follower. why: includes the host's name.
  FollowActions on_failed(std::size_t node, const std::string& why, Now now);
  FollowActions on_signal(int number, Now now);
  FollowActions on_gone(bool gone, Now now);
  // Call this at next_tick() or later.
  FollowActions tick(Now now);
  io::TimePoint next_tick() const;  // max(): never

  // Returns the result. Valid once `finish` was returned.
  Followed outcome() const;

 private:
  using Time = std::optional<io::TimePoint>;
  struct Host {
    bool over = false;  // the host's record says that the job has ended there
    bool clean = true;  // the last follower sent all output before its end
    Time cut_since;     // time of the first look at an ended job with incomplete output
    bool away = false;  // the link is lost
    bool met = false;   // a follower has run there
    bool lost = false;  // the part ended without a record of the end; may be resumed
    std::string why_away;
    io::TimePoint since;  // when the host was first asked, or its link was lost
    std::optional<job::JobRecord> record;
    Backoff pauses{{.first = Ms(50), .longest = Ms(5000)}};
    Time reopen_at;
    Time steady_at;  // from then on the running follower counts as back
  };

  bool all(const std::function<bool(const Host&)>& fact) const;
  void open(std::size_t node);
  void steady(std::size_t node, Now now);
  void failed(std::size_t node, const std::string& why, Now now);
  void missing(std::size_t node, const std::string& why, Now now);
  void lost(std::size_t node, const std::string& why, Now now);
  void over(std::size_t node, Now now);
  void ended(std::size_t node, Now now);
  void finish_if_over(Now now);
  void give_up();
  void tell_waiting(Now now);
  void look_at_silence(Now now);
  void leave(int signal);
  void finish();
  void say(std::string text);
  FollowActions taken();

  Settings settings_;
  std::vector<Host> hosts_;
  Silence silence_;
  int stops_ = 0;
  bool finishing_ = false;
  bool asking_gone_ = false;
  Time patience_at_;  // give up silent hosts
  Time notice_at_;    // name the hosts that are waited for again
  Time gone_at_;      // ask_gone is due
  io::TimePoint silence_at_;
  Followed followed_;
  FollowActions actions_;
};

}  // namespace lockstep::jobs::on_hosts
