// Makes the decisions of one command on several hosts: how each host ended, what a signal means,
// which hosts stop after another host's failure, which output is kept, and which hosts are silent.
// Pure: CommandRun feeds it with frames, events and time, and carries out the answers.
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
  // How far the link to a host is.
  struct Reach {
    bool ready = false;
    const char* doing = "";  // before that: "logging in"
  };
  // request must outlive the course. reach: asked for a host that is not over.
  CommandCourse(const CommandRequest& request, std::function<Reach(std::size_t host)> reach,
                io::TimePoint now);

  bool has_input() const;
  bool is_kept(link::Stream stream) const;
  // Returns the label before each printed line of the host: "gpus-0: ", or "".
  std::string prefix(std::size_t host) const;

  // Notes that the request went to the host and only the answer is missing. Returns true once that
  // holds for every host that is not over.
  bool on_asked(std::size_t host);
  void on_frame(std::size_t host, const link::Frame& frame, io::TimePoint now);
  // Returns false, and keeps nothing, if the output of the host would exceed kMostKept.
  bool keep(std::size_t host, link::Stream stream, std::string_view bytes);

  // Ends a host that is not over. Returns true if the failure must stop all other hosts
  // (fail_fast): once per course.
  bool end(std::size_t host, int code, std::string error);
  bool end(std::size_t host, const link::ChannelEnd& how);
  bool is_over(std::size_t host) const { return hosts_[host].over; }
  bool all_over() const;
  // Marks and returns the hosts that must stop because another host failed.
  std::vector<std::size_t> stop_others();
  std::string limit_error(std::size_t host) const;  // for a host that exceeds the time limit

  // Decides what a signal to this process means. Commands receive the signal and react as they
  // like. This process exits at once if a command has not begun yet, or at the third request to
  // stop. Its hosts then end their commands.
  enum class OnSignal { ignore, pass_on, leave };
  OnSignal on_signal(int number);

  // Lists the hosts that the user waits for, with a reason for each, and the hosts that need a
  // ping.
  struct Silence {
    WaitNotice::Waiting waiting;
    std::vector<std::size_t> pings;
  };
  Silence silence(io::TimePoint now);

  const std::vector<HostEnding>& endings() const { return endings_; }

 private:
  struct Host {
    bool asked = false;
    bool over = false;
    io::TimePoint heard;  // the last frame came
    bool pinged = false;  // and no frame has come since
    bool quiet = true;    // no output came and no input was taken since the last silence()
  };
  bool asks_lockstep() const;

  const CommandRequest& request_;
  std::function<Reach(std::size_t)> reach_;
  std::vector<Host> hosts_;
  std::vector<HostEnding> endings_;
  int stops_ = 0;
  bool failed_ = false;
};

}  // namespace lockstep::hosts
