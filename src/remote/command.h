// A client's command on this host: the process, the streams and the end.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/frames.h"
#include "link/stream_ends.h"
#include "proc/containment.h"
#include "proc/spawn.h"

#include <functional>
#include <memory>
#include <optional>

namespace lockstep::remote {

class Command {
 public:
  struct Events {
    std::function<void(const link::Frame&)> send;
    std::function<void()> process_ended;  // leftover processes may still hold the outputs
    std::function<void()> over;           // Exit has been sent; may destroy the command
  };

  // Why a command cannot start, with the matching exit code of a shell.
  struct Refusal {
    int code = 126;
    std::string why;
  };
  // Starts the program inside the containment. The streams begin to flow at once.
  static tl::expected<std::unique_ptr<Command>, Refusal> start(io::Loop& loop,
                                                               const link::Start& start,
                                                               const proc::Containment& containment,
                                                               Events events);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return child_->pid(); }
  bool is_running() const { return child_->alive(); }
  void input(std::string_view bytes);
  void end_of_input();
  void grant(link::Stream stream, std::size_t bytes);
  void signal(int number) const;

 private:
  Command(io::Loop& loop, std::uint32_t channel, Events events);
  void watch_outputs(io::Fd out, io::Fd err, io::Fd result);
  void watch_input(io::Fd in);
  std::unique_ptr<link::Source> source(link::Stream stream, int fd);
  void on_end();
  void finish_if_over();

  io::Loop& loop_;
  std::uint32_t channel_;
  Events events_;
  std::optional<proc::Child> child_;
  io::Fd in_;
  io::Fd out_;
  io::Fd err_;
  io::Fd result_fd_;
  std::unique_ptr<link::Sink> stdin_;  // nullptr: not requested, or closed
  std::unique_ptr<link::Source> stdout_;
  std::unique_ptr<link::Source> stderr_;
  std::unique_ptr<link::Source> result_;  // nullptr: not requested
  std::unique_ptr<io::Watch> end_watch_;
  bool told_ = false;  // Exit has been sent
  CallbackScope calls_;
};

// Returns the environment of a command: this process's variables, with the client's replacing those
// of the same name.
std::vector<std::string> merged_environment(const char* const* own,
                                            const std::vector<std::string>& given);

}  // namespace lockstep::remote
