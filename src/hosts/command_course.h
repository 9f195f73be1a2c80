// Makes the decisions of one command on several hosts: the end of each host, the meaning of a
// signal, the hosts to stop after a failure, the output to keep, and the silent hosts.
// Pure: CommandRun feeds the course with frames, events and time, and carries out the answers.
#pragma once

#include "hosts/command_run.h"
#include "hosts/wait_notice.h"
#include "io/loop.h"
#include "link/channel.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

class CommandCourse {
 public:
  // The state of the link to one host.
  struct Reach {
    bool ready = false;
    const char* doing = "";  // the step before that: "logging in"
  };
  // request must outlive the course. reach is called only for hosts that are not over.
  CommandCourse(const CommandRequest& request, std::function<Reach(std::size_t host)> reach,
                io::TimePoint now);

  // Returns whether the command gets input, on every host.
  bool has_input() const;
  // Returns whether the bytes of the stream go to the HostEnding, and not to the output.
  bool is_kept(link::Stream stream) const;
  // Returns the label before each printed line of the host: "gpus-0: ", or "".
  std::string prefix(std::size_t host) const;

  // Notes that the request went to the host and only the answer is missing. Returns true once all
  // hosts have reached this point or are over.
  bool on_asked(std::size_t host);
  // Notes a sign of life of the host.
  void on_frame(std::size_t host, const link::Frame& frame, io::TimePoint now);
  // Returns false, and keeps nothing, if the output of the host would exceed the limit.
  bool keep(std::size_t host, link::Stream stream, std::string_view bytes);

  // Ends a host that is not over. Returns true if the failure must stop all other hosts
  // (fail_fast). That happens at most once per course.
  bool end(std::size_t host, int code, std::string error);
  bool end(std::size_t host, const link::ChannelEnd& how);
  bool is_over(std::size_t host) const { return hosts_[host].over; }
  bool all_over() const;
  // Marks and returns the hosts that must stop because another host failed.
  std::vector<std::size_t> stop_others();
  // Notes that on_output has taken bytes, from `began` to `ended`. Returns the time that the limit
  // leaves after `ended`. The time that on_output takes is not the host's.
  io::Duration limit_after(std::size_t bytes, io::TimePoint began, io::TimePoint ended);
  // Returns the error of a host that exceeded CommandRequest::limit.
  std::string limit_error(std::size_t host) const;

  // Decides what a signal to this process means. Commands receive the signal and react as they
  // like. This process exits at once if a command has not begun yet, if a host does not answer, or
  // at the third request to stop. The hosts then end the commands, because their client is gone.
  enum class OnSignal { ignore, pass_on, leave };
  OnSignal on_signal(int number);

  // Lists the hosts that the user waits for, with a reason for each, and the hosts that need a
  // ping.
  struct SilentHosts {
    WaitNotice::Waiting waiting;
    std::vector<std::size_t> pings;
  };
  SilentHosts silence(io::TimePoint now);

  const std::vector<HostEnding>& endings() const { return endings_; }

 private:
  struct Host {
    bool asked = false;
    bool over = false;
    io::TimePoint heard;  // the last frame came
    bool pinged = false;  // a ping went out, and no frame has come since
    bool silent = false;  // a ping has had no answer for a whole notice
    bool quiet = true;    // no output came and no input was taken since the last silence()
  };
  bool asks_lockstep() const;

  const CommandRequest& request_;
  std::function<Reach(std::size_t)> reach_;
  std::vector<Host> hosts_;
  std::vector<HostEnding> endings_;
  io::TimePoint limit_at_;      // the end of CommandRequest::limit
  std::size_t new_output_ = 0;  // bytes since the limit began
  int stops_ = 0;               // requests to stop so far (SIGINT, SIGTERM, SIGHUP, SIGQUIT)
  bool failed_ = false;         // fail_fast has stopped the other hosts already
};

}  // namespace lockstep::hosts
