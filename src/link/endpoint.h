// One end of a link: frames over a pair of descriptors. A thin driver around FrameReader, and in a
// client around HostRules. The process must ignore SIGPIPE.
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

// Nothing calls back inside send(). May be destroyed in any callback.
class Endpoint {
 public:
  struct Events {
    std::function<void(Frame)> frame;
    // Closed, broken, nonsense or against the rules of a host (`corrupt`); nothing comes after it.
    // An orderly end has code `canceled`.
    std::function<void(const Error&)> ended;
  };

  // Both descriptors become non-blocking; they may be the same socket, duplicated. Wants::greeting
  // makes it the client's end, which takes nothing from its host that HostRules refuses.
  Endpoint(io::Loop& loop, io::Fd in, io::Fd out, FrameReader::Wants wants, Events events);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void greet();  // the host's end, before anything else
  void send(const Frame& frame);
  // Calls fn once all that was sent has been written, or can't be.
  void when_written(std::function<void()> fn);
  // What came before the greeting: the words of a login shell.
  const std::string& chatter() const { return reader_.chatter(); }
  bool greeted() const { return reader_.greeted(); }

 private:
  void flush();
  void receive();
  bool pass_on(Frame frame);
  void end(const Error& error);
  void written();

  io::Fd in_;
  io::Fd out_;
  io::Watch in_watch_;
  io::Watch out_watch_;
  Events events_;
  FrameReader reader_;
  std::optional<HostRules> rules_;  // of a client
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
  bool waits_for_room_ = false;
  bool broken_ = false;
  std::function<void()> when_written_;
  io::Timer later_;
  CallbackScope calls_;
};

}  // namespace lockstep::link
