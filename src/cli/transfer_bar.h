// The progress bar of a transfer: one line on the terminal, redrawn in place and wiped at the end.
#pragma once

#include "cli/terminal.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::cli {

// Returns the bar's text. of: bytes in all; 0: unknown. Leaves the last column free, because some
// terminals wrap to the next line behind the last column. Pure.
std::string bar_text(std::uint64_t bytes, std::uint64_t of, std::size_t columns);

// Draws the bar on stderr. Draws nothing if stderr is not a terminal.
class TransferBar {
 public:
  // How far a transfer has come. bytes 0 of 0: no transfer runs.
  using Sink = std::function<void(std::uint64_t bytes, std::uint64_t of)>;
  // Sends all bars of this process to a sink instead: a process without a terminal may have viewers
  // with one.
  static void send_to(Sink sink);

  // wanted: false: never draw, also on a terminal.
  explicit TransferBar(bool wanted) : wanted_(wanted) {}
  ~TransferBar() { clear(); }
  TransferBar(const TransferBar&) = delete;
  TransferBar& operator=(const TransferBar&) = delete;

  // Redraws the bar, at most ten times a second.
  void draw(std::uint64_t bytes, std::uint64_t of);
  // Wipes the bar. Call before other output to the terminal.
  void clear();

 private:
  bool wanted_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
  WipesForLog wipes_{[this] { clear(); }};
};

}  // namespace lockstep::cli
