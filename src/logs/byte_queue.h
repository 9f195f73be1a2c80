// Bytes waiting to be written, in one contiguous block: appended at the back, removed from the
// front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace lockstep::logs {

class ByteQueue {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  std::string_view view() const { return {bytes_.get() + head_, tail_ - head_}; }

  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    if (capacity_ - tail_ < bytes.size()) make_room(bytes.size());
    std::memcpy(bytes_.get() + tail_, bytes.data(), bytes.size());
    tail_ += bytes.size();
  }

  void consume(std::size_t size) {
    head_ += std::min(size, tail_ - head_);
    if (head_ == tail_) clear();
  }

  void clear() {
    head_ = tail_ = 0;
    if (capacity_ > kKeep) {  // a burst must not hold its memory for ever
      bytes_.reset();
      capacity_ = 0;
    }
  }

  std::size_t capacity() const { return capacity_; }

 private:
  static constexpr std::size_t kKeep = 4 << 20;

  void make_room(std::size_t size) {
    const std::size_t used = tail_ - head_;
    // Growing copies every byte. Moving to the front instead is cheap only if the front half is
    // free.
    if (used + size > capacity_ || head_ < capacity_ / 2) {
      const std::size_t grown = std::max({std::size_t{4096}, 2 * capacity_, used + size});
      // make_unique() would zero the memory first.
      std::unique_ptr<char[]> bytes(new char[grown]);
      if (used != 0) std::memcpy(bytes.get(), bytes_.get() + head_, used);
      bytes_ = std::move(bytes);
      capacity_ = grown;
    } else {
      std::memmove(bytes_.get(), bytes_.get() + head_, used);
    }
    head_ = 0;
    tail_ = used;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace lockstep::logs
