// One end of a link: frames over a pair of descriptors. A thin driver around FrameReader and, on a
// client, HostRules. The process must ignore SIGPIPE.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/frames.h"
#include "link/host_rules.h"

#include <functional>
#include <optional>
#include <string>

namespace lockstep::link {

// send() calls no event from inside. Any event may destroy the Endpoint.
class Endpoint {
 public:
  struct Events {
    std::function<void(Frame)> frame;
    // Called once, last. Code canceled: an orderly end; corrupt: bytes that are not frames, or
    // frames against the rules for hosts; others: the connection broke.
    std::function<void(const Error&)> ended;
  };

  // Makes both descriptors non-blocking; they may be duplicates of one socket. Wants::greeting
  // makes this the client's end, with the checks of HostRules.
  Endpoint(io::Loop& loop, io::Fd in, io::Fd out, FrameReader::Wants wants, Events events);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void greet();  // host's end only, before any frame
  void send(const Frame& frame);
  // Returns the bytes before the greeting: the words of a login shell.
  const std::string& chatter() const { return reader_.chatter(); }
  bool greeted() const { return reader_.greeted(); }

 private:
  void flush();
  void receive();
  bool pass_on(Frame frame);
  void end(const Error& error);

  io::Fd in_;
  io::Fd out_;
  io::Watch in_watch_;
  io::Watch out_watch_;
  Events events_;
  FrameReader reader_;
  std::optional<HostRules> rules_;  // of a client
  std::string unsent_;
  std::size_t sent_ = 0;  // bytes of unsent_ already written
  bool waits_for_room_ = false;
  bool broken_ = false;
  io::Timer later_;
  CallbackScope calls_;
};

}  // namespace lockstep::link
