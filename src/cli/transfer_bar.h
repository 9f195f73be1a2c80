// How far a transfer has come: one line on a terminal that is drawn again and again, and is gone in
// the end.
#pragma once

#include "cli/terminal.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::cli {

// of: 0 where it is not known. In fewer columns than there are, as some terminals go on to the next
// line behind the last one. Pure.
std::string bar_text(std::uint64_t bytes, std::uint64_t of, std::size_t columns);

// On stderr.
class TransferBar {
 public:
  // wanted: where stderr is a terminal on which it can be drawn.
  explicit TransferBar(bool wanted) : wanted_(wanted) {}
  ~TransferBar() { clear(); }
  TransferBar(const TransferBar&) = delete;
  TransferBar& operator=(const TransferBar&) = delete;

  void draw(std::uint64_t bytes, std::uint64_t of);
  // Before anything else is said there.
  void clear();

 private:
  bool wanted_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
  WipesForLog wipes_{[this] { clear(); }};
};

}  // namespace lockstep::cli
