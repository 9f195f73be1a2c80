// The stdout and stderr of one worker in one attempt. Opens files and pipes for the worker, reads
// the output, and sends the bytes to log files, to the console and to the tail for a failure
// report.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "logs/capture_plan.h"
#include "logs/console.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::logs {

class StreamReader;

class Capture {
 public:
  // Opens both streams and truncates the log files. `loop` and `console` must outlive the result.
  // Fails if a file or pipe cannot be opened.
  static Result<std::unique_ptr<Capture>> open(io::Loop& loop, Console& console, CapturePlan plan);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The child's descriptors for stdout and stderr, close-on-exec, to be dup2'ed to 1 and 2. -1: the
  // child inherits the agent's descriptor.
  int child_stdout_fd() const { return out_.child.get(); }
  int child_stderr_fd() const { return err_.child.get(); }
  // Call once the child has its descriptors. A pipe has no end of file while the agent holds the
  // write end, too.
  void close_child_ends();

  // Returns whether nothing more is to be read: every pipe is at its end, or there is none, or
  // drain_now() was called.
  bool drained() const;
  // Sets a callback that runs once, from the loop, when drained() becomes true. The callback may
  // destroy the Capture.
  void set_on_drained(std::function<void()> fn) { on_drained_ = std::move(fn); }
  // Call after the worker's end. Reads everything written so far and releases an unterminated last
  // line, without waiting for descendants that still hold the pipe. Their output is still read
  // until the Capture is destroyed. Does not call on_drained.
  void drain_now();

  // Returns the last lines of stderr, without ANSI colours. Other control bytes and broken UTF-8
  // become \xNN.
  std::string stderr_tail(std::size_t lines = 20) const;

  // Returns whether the last 64 KiB of stderr have the words. false if the worker writes stderr
  // itself.
  bool stderr_has(std::string_view words) const;

  // stdout and stderr share one pipe, so stderr_tail() contains both.
  bool tail_holds_stdout() const { return shared_; }

  // What both streams have printed so far. Streams that the worker writes itself (into a file, or
  // to the agent's own descriptor) do not count.
  struct Printed {
    std::uint64_t bytes = 0;
    std::optional<io::TimePoint> last = {};  // nullopt: no stream is read here
  };
  Printed printed() const;

  // The newest line of both streams, and the time since the newest output. Also looks into log
  // files that the worker writes itself, unless they are on a file server, which might keep the
  // caller waiting.
  struct Newest {
    std::string line = {};                              // readable, of any length
    std::optional<std::chrono::milliseconds> age = {};  // nullopt: no output that is seen here
  };
  Newest newest(io::TimePoint now) const;
  // Returns the last lines of both streams, readable: at most so many of each, and only of its last
  // few KiB. The stream with the newest output comes last.
  std::string last_lines(std::size_t lines, io::TimePoint now) const;

  // Passes on a changed size of the terminal (SIGWINCH).
  void resize();

  std::uint64_t lost_bytes() const;  // bytes that a file could not take (full disk)

 private:
  struct Side {
    StreamPlan plan;
    io::Fd child;
    std::unique_ptr<StreamReader> reader;
    bool is_pty = false;
    bool is_local_file = false;  // the worker writes the log file, on a disk of this machine
  };

  Capture() = default;
  Status open_side(io::Loop& loop, Console& console, Stream stream, const std::string& prefix);
  Status open_reader(io::Loop& loop, Console& console, Stream stream, const std::string& prefix);
  Status share_one_way(const Console& console);
  void on_end();

  // The newest bytes of a stream.
  struct Recent {
    std::string bytes = {};
    bool cut = false;                                   // `bytes` may begin within a line
    std::optional<std::chrono::milliseconds> age = {};  // as in Newest
  };
  static Recent recent_of(const Side& side, io::TimePoint now);
  // Both streams, that with the newest output first.
  std::array<Recent, 2> recent(io::TimePoint now) const;

  FoldSource source_;
  Side out_;
  Side err_;
  int console_err_fd_ = 2;
  bool shared_ = false;
  bool taken_ = false;  // drain_now() was called
  std::function<void()> on_drained_;
};

}  // namespace lockstep::logs
