// Makes the decisions while one host (the seed) gives files to other hosts (the takers): which
// takers have failed, and which takers the client awaits. Pure: FanOut feeds it with the hosts'
// answers.
#pragma once

#include "peer/meeting.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::project {

class FanCourse {
 public:
  struct Taker {
    bool connected = false;
    bool over = false;  // with or without trouble
    std::uint64_t bytes = 0;
    std::string trouble = {};  // why the files do not all come from the seed
  };

  explicit FanCourse(std::size_t takers) : takers_(takers) {}

  // Hosts by number: the seed is kSeed, and takers()[i] is host i + 1.
  static constexpr std::size_t kSeed = 0;
  enum class Next {
    wait,
    start_takers,  // the seed listens, where its answer says
    tell,          // a taker has come on
  };
  Next on_answer(std::size_t host, const peer::Answer& answer);
  // A failed seed also fails each taker without a connection. A connected taker notices the failure
  // itself, and may have all files already.
  void on_failed(std::size_t host, const std::string& why);
  // The time to find each other is over: takers without a connection get their files from the
  // client.
  void on_late();
  // Every taker has reached the seed or is over: from here on takers are awaited to the end.
  void opened() { opening_ = false; }

  // Returns whether a taker is awaited: while the fan opens until the taker is connected,
  // afterwards until the taker is over.
  bool waits() const;
  bool any_connected() const;
  std::uint64_t bytes() const;  // received by all takers
  const std::vector<Taker>& takers() const { return takers_; }

 private:
  std::vector<Taker> takers_;
  bool opening_ = true;
  bool listening_ = false;
};

}  // namespace lockstep::project
