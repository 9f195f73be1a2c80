// One file behind the console. Queues output, writes without blocking and without touching flags
// that the user's shell shares, and knows the source of an unterminated last line.
#pragma once

#include "io/fd.h"
#include "io/loop.h"
#include "logs/byte_queue.h"
#include "logs/console.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace lockstep::logs {

class ConsoleSink {
 public:
  ConsoleSink(io::Loop& loop, int fd, const Console::Options& options);

  void attach(ConsoleSource& source);
  void detach(ConsoleSource& source);
  std::size_t sources() const { return sources_.size(); }
  // source: nullptr for the agent itself.
  ByteQueue& begin(ConsoleSource* source, bool takes_over);
  void end(ConsoleSource* source, bool mid_line);

  // Writes what the file takes now, and watches for room for the rest.
  void flush();
  int poll_fd() const { return own_ ? own_.get() : fd_; }
  std::size_t pending() const { return queue_.size(); }
  bool broken() const { return broken_; }

 private:
  enum class Kind {
    gone,    // already closed when the agent started
    plain,   // a file or /dev/null: written directly
    own,     // a pipe or terminal, opened a second time to be non-blocking for us alone
    socket,  // written with non-blocking send()
    polled,  // cannot be opened a second time: written in small pieces after a poll()
  };

  static Kind kind_of(int fd, bool reopen, io::Fd& own);
  long write_some(std::string_view bytes) const;
  void wait_for_room();
  void give_up(int reason);
  void set_paused(bool paused);

  io::Loop& loop_;
  int fd_;
  io::Fd own_;
  Kind kind_;
  std::size_t high_water_;
  std::size_t low_water_;
  ByteQueue queue_;
  std::vector<ConsoleSource*> sources_;
  bool mid_line_ = false;
  ConsoleSource* mid_line_of_ = nullptr;  // nullptr: the agent, or a detached source
  bool paused_ = false;
  bool broken_ = false;
  bool said_so_ = false;
  bool blocked_ = false;  // waiting until the watch sees room
  io::Fd epoll_;
  std::unique_ptr<io::Watch> watch_;
};

}  // namespace lockstep::logs
