// The stdout and stderr of one worker of one attempt: opens what the worker writes to, reads what
// comes back, and sends it to files, console and the tail that a failure report shows.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "logs/capture_plan.h"
#include "logs/console.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::logs {

class StreamReader;

class Capture {
 public:
  // loop and console must outlive it. Files are truncated here.
  static Result<std::unique_ptr<Capture>> open(io::Loop& loop, Console& console, CapturePlan plan);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The child's 1 and 2, to be dup2'ed there; -1: it inherits the agent's. Close-on-exec.
  int child_stdout_fd() const { return out_.child.get(); }
  int child_stderr_fd() const { return err_.child.get(); }
  // To be called once the child has them: while the agent holds them too, the pipes have no end.
  void close_child_ends();

  // There is nothing more to wait for: every pipe is at its end, there is none, or drain_now() was
  // called.
  bool drained() const;
  // Called once, from the loop, when drained() becomes true. It may destroy the Capture.
  void set_on_drained(std::function<void()> fn) { on_drained_ = std::move(fn); }
  // After the worker's end: takes what was written so far and sends the last unterminated line on
  // its way, without waiting for descendants that hold the pipe. Those are still read until the
  // Capture goes. Does not call on_drained.
  void drain_now();

  // The last lines of stderr: ANSI colours taken out, other control bytes and broken UTF-8 as \xNN.
  std::string stderr_tail(std::size_t lines = 20) const;

  // stdout and stderr go one way, so that stderr_tail() holds both.
  bool tail_holds_stdout() const { return shared_; }

  // The terminal's size changed (SIGWINCH).
  void resize();

  std::uint64_t lost_bytes() const;  // bytes that a file did not take (full disk)

 private:
  struct Side {
    StreamPlan plan;
    io::Fd child;
    std::unique_ptr<StreamReader> reader;
    bool is_pty = false;
  };

  Capture() = default;
  Status open_side(io::Loop& loop, Console& console, Stream stream, const std::string& prefix);
  Status open_reader(io::Loop& loop, Console& console, Stream stream, const std::string& prefix);
  Status share_one_way(const Console& console);
  void on_end();

  FoldSource source_;
  Side out_;
  Side err_;
  int console_err_fd_ = 2;
  bool shared_ = false;
  bool taken_ = false;  // drain_now() was called
  std::function<void()> on_drained_;
};

}  // namespace lockstep::logs
