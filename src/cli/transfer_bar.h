// How far a transfer has come: one line on a terminal that is drawn again and again, and is gone in
// the end.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep::cli {

class TransferBar {
 public:
  explicit TransferBar(bool shown) : shown_(shown) {}
  ~TransferBar();
  TransferBar(const TransferBar&) = delete;
  TransferBar& operator=(const TransferBar&) = delete;

  void draw(std::uint64_t bytes, std::uint64_t of);

 private:
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace lockstep::cli
