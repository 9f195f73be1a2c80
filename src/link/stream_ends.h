// The two ends of one stream of a channel: a Source reads a descriptor as far as the other side has
// room, a Sink writes what comes and tells what it has written, which is room again.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::link {

// Neither owns its descriptor. pollable: false for a file or /dev/null, which never block. An event
// may destroy the object that calls it.
class Source {
 public:
  struct Events {
    std::function<void(std::string bytes)> data;
    std::function<void()> eof;  // also after an error; nothing comes after it
  };
  Source(io::Loop& loop, int fd, bool pollable, Events events);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  void grant(std::size_t bytes);
  bool at_end() const { return at_end_; }

 private:
  void read_some();
  void pause();
  void go_on();

  int fd_;
  Events events_;
  std::size_t room_;
  bool at_end_ = false;
  bool paused_ = false;
  std::unique_ptr<io::Watch> watch_;  // nullptr: not pollable
  io::Timer turn_;                    // the next read of what is not pollable
  CallbackScope calls_;
};

class Sink {
 public:
  struct Events {
    std::function<void(std::size_t bytes)> consumed;
    std::function<void()> finished;  // after finish(), once all is written
  };
  Sink(io::Loop& loop, int fd, bool pollable, Events events);
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void put(std::string_view bytes);
  void finish();
  // Nobody reads any more: what comes is dropped, and counts as consumed.
  bool broken() const { return broken_; }
  bool idle() const { return waiting_.empty(); }

 private:
  void flush();
  void wait_for_room(bool wait);

  int fd_;
  Events events_;
  std::string waiting_;
  std::size_t written_ = 0;  // of waiting_
  bool waits_ = false;
  bool broken_ = false;
  bool finishing_ = false;
  std::unique_ptr<io::Watch> watch_;  // nullptr: not pollable
  io::Timer turn_;                    // tells, as nothing calls back inside put()
  std::size_t untold_ = 0;            // consumed
  CallbackScope calls_;
};

}  // namespace lockstep::link
