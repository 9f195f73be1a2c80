// What a follower of a job on hosts does next, from what its hosts say and from the time. Pure: the
// driver in follow.cc opens the links, prints the output and hands in every event.
#pragma once

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
    open,      // a new link to `node`, with a follower that starts at the bytes that have come
    ask,       // the host's record of the job, over the link of `node`
    cancel,    // cancels the job on `node`, for the `count`th time
    end_node,  // no output comes from `node` any more
    ask_gone,  // whether hosts that are away are gone for good; answer with on_gone()
    say,       // `text`, a warning for the user
    finish,    // print what is left and return
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

  // steady: for pauses. boot: counts the time in which this machine slept, for Silence.
  struct Now {
    io::TimePoint steady;
    Ms boot;
  };
  struct Settings {
    std::string job = {};                 // its id
    std::vector<std::string> hosts = {};  // their names, node 0 first
    bool to_end = true;
    FollowOptions::OnStop on_stop = FollowOptions::OnStop::leave;
    bool may_be_gone = false;  // ask_gone has an answer
    // What the link of a node does before its follower starts: "logging in".
    std::function<const char*(std::size_t)> doing = {};
  };

  FollowCore(Settings settings, Now now);

  FollowActions start(Now now);
  // The follower on the host has started.
  FollowActions on_started(std::size_t node, Now now);
  // The follower has sent output.
  FollowActions on_output(std::size_t node, Now now);
  // The follower has ended. That says nothing about the job: the host's memory may have run out, or
  // the link there was stopped. Only the record that the job's supervisor wrote tells.
  FollowActions on_follower_end(std::size_t node, int code, int signal, Now now);
  // The host's answer to `ask`, whole.
  FollowActions on_record(std::size_t node, std::string_view text, Now now);
  // The link is lost, or the host refuses to start the follower. why: names the host.
  FollowActions on_failed(std::size_t node, const std::string& why, Now now);
  FollowActions on_signal(int number, Now now);
  FollowActions on_gone(bool gone, Now now);
  // Call at next_tick(), or later.
  FollowActions tick(Now now);
  io::TimePoint next_tick() const;  // max(): no more

  // Once `finish` was returned.
  Followed outcome() const;

 private:
  using Time = std::optional<io::TimePoint>;
  struct Host {
    bool over = false;  // the host's record says that the job has ended there
    bool clean = true;  // the last follower there passed on all output before it ended
    Time cut_since;     // the first look at an ended job whose output is incomplete
    bool away = false;  // its link is lost
    bool met = false;   // a follower ran there
    bool lost = false;  // its part of the job ended without a record; it may be resumed
    std::string why_away;
    io::TimePoint since;  // when it was first asked, or went away
    std::optional<job::JobRecord> record;
    Ms pause;
    Time reopen_at;
    Time steady_at;  // the follower that runs since counts as back from then on
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
  Time patience_at_;  // the hosts that are away are given up
  Time notice_at_;    // the hosts that are waited for are named again
  Time gone_at_;      // ask_gone is due
  io::TimePoint silence_at_;
  Followed followed_;
  FollowActions actions_;
};

}  // namespace lockstep::jobs::on_hosts
