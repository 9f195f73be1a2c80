// What a host may send to its client. A host is not trusted: each frame is held against what this
// client has asked for and the room it has given. Pure.
#pragma once

#include "link/frames.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace lockstep::link {

class HostRules {
 public:
  enum class Verdict {
    take,
    drop,    // late, harmless, and not to be passed on
    refuse,  // no honest host sends it: see why()
  };

  // Tells of a frame that the client sends.
  void sent(const Frame& frame);
  // Judges a frame that came from the host.
  Verdict judge(const Frame& frame);
  // The reason of the last refusal.
  std::string_view why() const { return why_; }

 private:
  struct Channel {
    bool started = false;
    bool result = false;
    std::size_t input = 0;  // bytes sent to the program that the host has not counted as read
    std::array<std::size_t, 4> room = {0, kWindow, kWindow, kWindow};  // of each stream
  };

  void note(const Start& start);
  void note(const Data& data);
  void note(const Credit& credit);
  void note(const Ping& ping);
  template <class Other>
  void note(const Other& /*frame*/) {}

  Verdict on(const Hello& hello);
  Verdict on(const Started& started);
  Verdict on(const Refused& refused);
  Verdict on(const Exit& exit);
  Verdict on(const Data& data);
  Verdict on(const Eof& eof);
  Verdict on(const Credit& credit);
  Verdict on(const Ping& ping);
  Verdict on(const Pong& pong);
  template <class Other>
  Verdict on(const Other& /*frame*/) {
    return refuse("what only a client sends");
  }

  // nullptr: no program runs on that channel.
  Channel* running(std::uint32_t channel);
  Verdict refuse(std::string_view why);

  std::map<std::uint32_t, Channel> channels_;  // from Start to Exit or Refused
  std::size_t pings_ = 0;                      // not answered yet
  bool greeted_ = false;
  std::string_view why_;
};

}  // namespace lockstep::link
