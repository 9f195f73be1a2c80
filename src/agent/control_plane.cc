#include "agent/control_plane.h"

#include <string_view>
#include <utility>

namespace lockstep::agent {

DumpCall::DumpCall(io::Loop& loop, io::Fd socket, std::size_t limit)
    : stream_(loop, std::move(socket), nullptr), limit_(limit) {
  stream_.listen({.bytes = [this](std::string_view bytes) { on_bytes(bytes); },
                  .ended =
                      [this](const Status&) {
                        (void)answer_.end();
                        conclude();
                        if (state_ == State::asked) state_ = State::bad;
                      }});
  // PyTorch answers without Python's lock. Older versions have no handler of this name: 404.
  stream_.write(
      "POST /handler/fr_trace_json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      "Content-Length: 0\r\n\r\n");
}

void DumpCall::on_bytes(std::string_view bytes) {
  if (state_ != State::asked) return;
  (void)answer_.feed(bytes, body_);
  if (body_.size() > limit_) {
    state_ = State::bad;
    std::string().swap(body_);
  } else {
    conclude();
  }
}

void DumpCall::conclude() {
  using Parsed = http::ResponseParser::State;
  if (state_ != State::asked) return;
  if (answer_.state() == Parsed::bad) state_ = State::bad;
  if (answer_.state() == Parsed::complete)
    state_ = answer_.head().status == 200 ? State::dump : State::none;
}

}  // namespace lockstep::agent
