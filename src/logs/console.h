// The agent's own stdout and stderr, shared by the streams of all workers and by the log. Never
// blocks the loop, never sets O_NONBLOCK on the inherited descriptors (the user's shell shares
// them), and never lets one origin's output start in the middle of another's line. A slow
// console makes the origins pause, so that workers wait for it as if they wrote to it themselves.
// The process must ignore SIGPIPE.
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

// One origin of console output: a worker's stream.
class ConsoleSource {
 public:
  // The console is full (true): read nothing more until it says false.
  virtual void on_pause(bool paused) = 0;
  // Another origin wrote, so this source's unterminated line was ended with '\n'.
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
    std::size_t high_water = 1 << 20;   // with more than this waiting, sources pause
    std::size_t low_water = 256 << 10;  // with no more than this, they go on
    bool reopen = true;                 // false: as if /proc were missing; for tests
  };

  explicit Console(io::Loop& loop);
  Console(io::Loop& loop, Options options);
  ~Console();  // writes what can be written at once; call drain() before
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // From now on log lines (log::write) go through this console, until it leaves them or ends.
  void take_log();
  void leave_log();

  // Writes text of the agent itself, which must be whole lines.
  void write(Stream stream, std::string_view lines);

  // From now on equal lines of several workers become one on this stream's file.
  void start_folding(Stream stream, const FoldPrefix& prefix);
  ConsoleFold* fold(Stream stream) const;  // nullptr: lines are shown as they come

  // Blocks until all is written, the console is gone, or the deadline has passed. True: all is out.
  bool drain(io::TimePoint deadline);

  // Output was lost because the console was closed or its disk is full.
  bool broken(Stream stream) const;
  std::size_t pending(Stream stream) const;  // bytes

  // For sources: attach() comes first, detach() before the source is destroyed. A write is
  //   ByteQueue& to = console.begin(stream, source, takes_over);  to.append(...);
  //   console.end(stream, source, ends_in_mid_line);
  // takes_over: the bytes begin with '\r', so another's unterminated line may be overwritten.
  void attach(Stream stream, ConsoleSource& source);
  void detach(Stream stream, ConsoleSource& source);
  ByteQueue& begin(Stream stream, ConsoleSource& source, bool takes_over = false);
  void end(Stream stream, ConsoleSource& source, bool mid_line);

  bool one_file() const { return !sinks_[1]; }  // 2>&1, or both on one terminal
  int fd(Stream stream) const;                  // the inherited descriptor
  // Space that all readers share; its contents do not outlive a callback.
  static std::span<char> scratch();

 private:
  std::size_t index(Stream stream) const;
  ConsoleSink& sink(Stream stream) const { return *sinks_[index(stream)]; }
  void write_now(Stream stream, std::string_view lines);

  io::Loop& loop_;
  int fds_[2];
  std::unique_ptr<ConsoleSink> sinks_[2];  // the second is empty where both streams are one file
  std::unique_ptr<ConsoleFold> folds_[2];  // of the sinks
  bool has_log_ = false;
};

}  // namespace lockstep::logs
