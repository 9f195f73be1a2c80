// The client's end of one channel of a link: one program on the host, from its Start to its end.
#pragma once

#include "link/frames.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::link {

// How a program on a host ended for its client.
struct ChannelEnd {
  enum class Kind {
    exited,    // `code` is the exit code
    signaled,  // `code` is the number of the signal that killed the program
    refused,   // the host could not start the program: `code` is 126 or 127, `why` says more
    lost,      // the link failed before the host told the end: `why` is the link's error
  };
  Kind kind = Kind::lost;
  int code = 0;
  std::string why = {};

  bool succeeded() const { return kind == Kind::exited && code == 0; }
  // The exit code that a shell reports: 128 + signal; 255 for a lost link, as ssh does.
  int shell_code() const;
};

// Pure: the owner passes on what the channel sends, and feeds it with frames (take) and with the
// end of the link (lose). Nothing calls back inside start(), write(), end_input(), signal() or
// consumed(). Any event may destroy the channel.
class Channel {
 public:
  using Send = std::function<void(const Frame&)>;
  enum class Credits {
    at_once,        // output counts as consumed before the `output` event
    when_consumed,  // the owner calls consumed()
  };
  struct Events {
    std::function<void()> started = {};
    std::function<void(Stream stream, std::string_view bytes)> output = {};
    // The program has read this many bytes of its input: the owner may send as many again.
    std::function<void(std::size_t bytes)> input_read = {};
    std::function<void(const ChannelEnd& end)> ended = {};  // once; no event comes after it
  };

  // number: unique on the link, also after the end. The host may still send Credit for it then.
  Channel(std::uint32_t number, Send send, Events events, Credits credits = Credits::at_once);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Once. `start.channel` is filled in here.
  void start(Start start);
  // Input, for a Start with `input`. What exceeds the host's window waits here for Credit.
  void write(std::string bytes);
  void end_input();  // behind all that was written
  void signal(int number);
  // With Credits::when_consumed. Never grants the host more than it has sent.
  void consumed(Stream stream, std::size_t bytes);

  // Returns whether the frame belongs to this channel. Other frames change nothing.
  bool take(const Frame& frame);
  // The link failed. Does nothing after the end.
  void lose(std::string why);

  bool is_running() const { return state_ == State::running; }
  bool is_over() const { return state_ == State::over; }

 private:
  enum class State { idle, starting, running, over };

  void on(const Started& started);
  void on(const Refused& refused);
  void on(const Exit& exit);
  void on(const Data& data);
  void on(const Credit& credit);
  template <class Other>
  void on(const Other& /*frame*/) {}  // Eof: Exit says that all output has come

  void send_waiting();
  void end(const ChannelEnd& end);

  const std::uint32_t number_;
  Send send_;
  std::shared_ptr<const Events> events_;  // outlives a callback that destroys the channel
  const Credits credits_;
  State state_ = State::idle;
  std::string waiting_;  // input without room yet
  std::size_t room_ = kWindow;
  bool input_ends_ = false;
  bool input_ended_ = false;                // Eof was sent
  std::array<std::size_t, 4> unread_ = {};  // of each stream: output that is not consumed yet
  std::array<std::size_t, 4> owed_ = {};    // of each stream: consumed, and not granted yet
};

}  // namespace lockstep::link
