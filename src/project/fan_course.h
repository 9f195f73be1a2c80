// Makes the decisions while a host (the seed) gives files to other hosts (the takers): which takers
// have failed, and which takers the client awaits. Pure: FanOut feeds the course with the hosts'
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
    bool over = false;  // has ended, with or without trouble
    std::uint64_t bytes = 0;
    std::string trouble = {};  // the reason why some files do not come from the seed
  };

  explicit FanCourse(std::size_t takers) : takers_(takers) {}

  // Hosts have numbers: the seed is kSeed, and takers()[i] is host i + 1.
  static constexpr std::size_t kSeed = 0;
  enum class Next {
    wait,
    start_takers,  // the seed listens; its answer has the addresses
    tell,          // a taker has made progress
  };
  // Notes the answer of a host. Returns what the caller must do.
  Next on_answer(std::size_t host, const peer::Answer& answer);
  // Ends a host that has failed. A failed seed also ends each taker without a connection. A
  // connected taker notices the failure itself, and may have all files already.
  void on_failed(std::size_t host, const std::string& why);
  // Ends all takers without a connection: their time is over, and the client sends their files.
  void on_late();
  // Call once every taker has reached the seed or is over. From then on takers are awaited to the
  // end.
  void opened() { opening_ = false; }

  // Returns whether a taker is awaited: while the fan opens until the taker is connected,
  // afterwards until the taker is over.
  bool waits() const;
  bool any_connected() const;
  // Returns the bytes that all takers have received.
  std::uint64_t bytes() const;
  const std::vector<Taker>& takers() const { return takers_; }

 private:
  std::vector<Taker> takers_;
  bool opening_ = true;
  bool listening_ = false;
};

}  // namespace lockstep::project
