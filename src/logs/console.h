// The agent's stdout and stderr, shared by all workers' streams and by the log. The process must
// ignore SIGPIPE. Rules:
// - Never block the loop.
// - Never set O_NONBLOCK on the inherited descriptors: the user's shell shares them.
// - Never start output of one source in the middle of another source's line.
// - If the console is slow, pause the sources: workers then wait as if they wrote to it directly.
#pragma once

#include "io/loop.h"
#include "logs/byte_queue.h"
#include "logs/console_fold.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::logs {

enum class Stream { out, err };

// One source of console output: a stream of a worker.
class ConsoleSource {
 public:
  // true: the console is full, so read nothing more. false: go on.
  virtual void on_pause(bool paused) = 0;
  // Another source wrote: the unterminated line of this source was ended with '\n'.
  virtual void on_cut() = 0;

 protected:
  ~ConsoleSource() = default;
};

class ConsoleSink;

class Console {
 public:
  struct Options {
    int out_fd = 1;
    int err_fd = 2;
    std::size_t high_water = 1 << 20;   // sources pause above this many waiting bytes
    std::size_t low_water = 256 << 10;  // sources go on at this many or fewer
    bool reopen = true;                 // false: act as if /proc were missing, for tests
  };

  explicit Console(io::Loop& loop);
  Console(io::Loop& loop, Options options);
  ~Console();  // writes what can be written at once; call drain() first
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Sends log lines (log::write) through this console, until leave_log() or destruction.
  void take_log();
  void leave_log();

  // Writes text of the agent itself. `lines` must be whole lines.
  void write(Stream stream, std::string_view lines);

  // Folds equal lines of several workers into one on this stream, from now on.
  void start_folding(Stream stream, const FoldPrefix& prefix);
  ConsoleFold* fold(Stream stream) const;  // nullptr: no folding

  // Blocks until everything is written, the console is gone, or the deadline has passed. Returns
  // true if all output was written.
  bool drain(io::TimePoint deadline);

  // Returns whether output was lost because the console was closed or the disk is full.
  bool broken(Stream stream) const;
  std::size_t pending(Stream stream) const;  // bytes

  // For sources. Call attach() first, and detach() before the source is destroyed. A write is:
  //   ByteQueue& to = console.begin(stream, source, takes_over);  to.append(...);
  //   console.end(stream, source, ends_in_mid_line);
  // takes_over: the bytes begin with '\r' and may overwrite another source's unterminated line.
  void attach(Stream stream, ConsoleSource& source);
  void detach(Stream stream, ConsoleSource& source);
  // Returns whether this stream has a single source, apart from the agent itself.
  bool is_alone(Stream stream) const;
  ByteQueue& begin(Stream stream, ConsoleSource& source, bool takes_over = false);
  void end(Stream stream, ConsoleSource& source, bool mid_line);

  bool one_file() const { return !sinks_[1]; }  // 2>&1, or both on the same terminal
  int fd(Stream stream) const;                  // the inherited descriptor
  // Buffer shared by all readers. The contents do not survive a callback.
  static std::span<char> scratch();

 private:
  std::size_t index(Stream stream) const;
  ConsoleSink& sink(Stream stream) const { return *sinks_[index(stream)]; }
  void write_now(Stream stream, std::string_view lines);

  io::Loop& loop_;
  int fds_[2];
  std::unique_ptr<ConsoleSink> sinks_[2];  // the second is empty if both streams are one file
  std::unique_ptr<ConsoleFold> folds_[2];  // one per sink
  bool has_log_ = false;
};

}  // namespace lockstep::logs
