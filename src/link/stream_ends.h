// The two ends of one stream of a channel: a Source reads a descriptor as far as the other side has
// room, a Feed makes the bytes itself, a Sink writes what comes and tells what it has written,
// which is room again.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
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

// The bytes are asked for when the other side has room, so that no more are held than fit.
class Feed {
 public:
  using Next = std::function<std::optional<std::string>()>;  // nullopt: that was all
  Feed(io::Loop& loop, Next next, Source::Events events);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  void grant(std::size_t bytes);

 private:
  void go_on();
  void send_some();

  Next next_;
  Source::Events events_;
  std::string bytes_;
  std::size_t sent_ = 0;  // of bytes_
  std::size_t room_;
  bool at_end_ = false;
  io::Timer turn_;
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
