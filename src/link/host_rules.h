// The rules for frames from a host. A host is not trusted: each frame is compared with what this
// client asked for and the credit it gave. Pure.
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
    drop,    // late but harmless: do not pass it on
    refuse,  // no honest host sends it: see why()
  };

  // Notes a frame sent by the client.
  void sent(const Frame& frame);
  // Judges a frame received from the host.
  Verdict judge(const Frame& frame);
  // Returns the reason of the last refusal.
  std::string_view why() const { return why_; }

 private:
  struct Channel {
    bool started = false;
    bool result = false;
    std::size_t input = 0;  // bytes sent to the program that the host has not yet reported as read
    // remaining credit of each stream
    std::array<std::size_t, 4> room = {0, kWindow, kWindow, kWindow};
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
    return refuse("a frame that only clients send");
  }

  // Returns nullptr if no program runs on the channel.
  Channel* running(std::uint32_t channel);
  Verdict refuse(std::string_view why);

  std::map<std::uint32_t, Channel> channels_;  // from Start until Exit or Refused
  std::size_t pings_ = 0;                      // unanswered
  bool greeted_ = false;
  std::string_view why_;
};

}  // namespace lockstep::link
