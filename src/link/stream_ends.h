// The ends of one stream of a channel. A Source reads a descriptor as far as the other side has
// given credit. A Feed produces the bytes itself. A Sink writes bytes and reports how many, which
// becomes new credit.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::link {

// Neither owns its descriptor. pollable: false for a file or /dev/null, which never block but
// cannot be polled. An event may destroy the object.
class Source {
 public:
  struct Events {
    std::function<void(std::string bytes)> data;
    std::function<void()> eof;  // also after an error; no event follows
  };
  Source(io::Loop& loop, int fd, bool pollable, Events events);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Adds credit. The total never exceeds kWindow.
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
  io::Timer turn_;                    // the next read, if not pollable
  CallbackScope calls_;
};

// Calls `next` only when there is credit, so that little is held in memory.
class Feed {
 public:
  using Next = std::function<std::optional<std::string>()>;  // nullopt: the end
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
  std::size_t sent_ = 0;  // bytes of bytes_ already sent
  std::size_t room_;
  bool at_end_ = false;
  io::Timer turn_;
  CallbackScope calls_;
};

class Sink {
 public:
  struct Events {
    std::function<void(std::size_t bytes)> consumed;
    std::function<void()> finished;  // after finish(), once everything is written
  };
  Sink(io::Loop& loop, int fd, bool pollable, Events events);
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Writes the bytes or holds them. Calls no event from inside.
  void put(std::string_view bytes);
  void finish();
  // The reader is gone. Further bytes are dropped and count as consumed, so that the sender does
  // not stall.
  bool broken() const { return broken_; }
  bool idle() const { return waiting_.empty(); }

 private:
  std::size_t write_some(std::string_view bytes);
  void flush();
  void wait_for_room(bool wait);

  int fd_;
  Events events_;
  std::string waiting_;
  std::size_t written_ = 0;  // bytes of waiting_ already written
  bool waits_ = false;
  bool broken_ = false;
  bool finishing_ = false;
  std::unique_ptr<io::Watch> watch_;  // nullptr: not pollable
  io::Timer turn_;                    // reports later, because put() calls no event
  std::size_t untold_ = 0;            // consumed but not reported yet
  CallbackScope calls_;
};

}  // namespace lockstep::link
