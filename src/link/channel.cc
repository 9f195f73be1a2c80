#include "link/channel.h"

#include "base/exit_codes.h"
#include "base/text.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep::link {
namespace {

constexpr int kSignalBase = 128;
// A Credit for each Data would cost a system call and an encrypted packet for every 64 KiB of
// output. A quarter of the window keeps the host writing while the Credit travels.
constexpr std::size_t kGrantFrom = kWindow / 4;

std::size_t place(Stream stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

int ChannelEnd::shell_code() const {
  if (kind == Kind::signaled) return kSignalBase + code;
  return kind == Kind::lost ? kExitNotReached : code;
}

Channel::Channel(std::uint32_t number, Send send, Events events, Credits credits)
    : number_(number),
      send_(std::move(send)),
      events_(std::make_shared<const Events>(std::move(events))),
      credits_(credits) {}

void Channel::start(Start start) {
  if (state_ != State::idle) return;
  state_ = State::starting;
  start.channel = number_;
  send_(start);
}

void Channel::write(std::string bytes) {
  if (state_ == State::over || input_ends_) return;
  // The common case moves the bytes into the frame: a Feed and a Source cut pieces of this size.
  if (waiting_.empty() && !bytes.empty() && bytes.size() <= std::min(room_, kMaxData)) {
    room_ -= bytes.size();
    return send_(Data{number_, Stream::in, std::move(bytes)});
  }
  waiting_ += bytes;
  send_waiting();
}

void Channel::end_input() {
  if (state_ == State::over || input_ends_) return;
  input_ends_ = true;
  send_waiting();
}

void Channel::send_waiting() {
  std::size_t sent = 0;
  while (room_ > 0 && sent < waiting_.size()) {
    std::string part = waiting_.substr(sent, std::min(room_, kMaxData));
    sent += part.size();
    room_ -= part.size();
    send_(Data{number_, Stream::in, std::move(part)});
  }
  waiting_.erase(0, sent);
  if (!input_ends_ || !waiting_.empty() || std::exchange(input_ended_, true)) return;
  send_(Eof{number_, Stream::in});
}

void Channel::signal(int number) {
  if (state_ != State::over) send_(Signal{number_, number});
}

void Channel::consumed(Stream stream, std::size_t bytes) {
  std::size_t& unread = unread_[place(stream)];
  std::size_t& owed = owed_[place(stream)];
  // Callers may report more bytes than came. Credit for these would let the host exceed the window.
  const std::size_t counted = std::min(bytes, unread);
  unread -= counted;
  owed += counted;
  if (owed < kGrantFrom || state_ != State::running) return;
  send_(Credit{number_, stream, static_cast<std::uint32_t>(std::exchange(owed, 0))});
}

bool Channel::take(const Frame& frame) {
  return std::visit(
      [this](const auto& content) {
        if constexpr (requires { content.channel; }) {
          if (content.channel != number_) return false;
          on(content);
          return true;
        } else {
          return false;
        }
      },
      frame);
}

void Channel::on(const Started& /*started*/) {
  if (state_ != State::starting) return;
  state_ = State::running;
  const auto events = events_;
  if (events->started) events->started();
}

void Channel::on(const Refused& refused) {
  // A frame's line has no ESC, but may have U+009B, which also begins a command to the terminal.
  if (state_ == State::starting)
    end({.kind = ChannelEnd::Kind::refused,
         .code = refused.code,
         .why = printable(refused.why, kMaxLine)});
}

void Channel::on(const Exit& exit) {
  // The host may send Exit only after Started. A frame out of order is ignored here, and HostRules
  // ends the link.
  if (state_ != State::running) return;
  if (exit.signal != 0)
    end({.kind = ChannelEnd::Kind::signaled, .code = exit.signal});
  else
    end({.kind = ChannelEnd::Kind::exited, .code = exit.code});
}

void Channel::on(const Data& data) {
  if (state_ != State::running || data.bytes.empty()) return;
  unread_[place(data.stream)] += data.bytes.size();
  // Before the event, which may destroy the channel.
  if (credits_ == Credits::at_once) consumed(data.stream, data.bytes.size());
  const auto events = events_;
  if (events->output) events->output(data.stream, data.bytes);
}

void Channel::on(const Credit& credit) {
  if (state_ == State::over || credit.stream != Stream::in) return;
  // A broken host must not make this end send without limit.
  room_ = std::min(room_ + credit.bytes, kWindow);
  send_waiting();
  const auto events = events_;
  if (events->input_read) events->input_read(credit.bytes);
}

void Channel::lose(std::string why) {
  if (state_ != State::over) end({.kind = ChannelEnd::Kind::lost, .why = std::move(why)});
}

void Channel::end(const ChannelEnd& end) {
  state_ = State::over;
  const auto events = events_;
  if (events->ended) events->ended(end);
}

}  // namespace lockstep::link
