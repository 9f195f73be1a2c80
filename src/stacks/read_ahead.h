// Reads the page around a frame at once, because the frames of callers lie next to it. Without it,
// each frame costs a system call.
#pragma once

#include "stacks/memory.h"

#include <array>

namespace lockstep::stacks {

class ReadAhead {
 public:
  // `ahead`: false reads exactly what is asked for.
  ReadAhead(Memory& memory, bool ahead) : memory_(memory), ahead_(ahead) {}

  bool load(ObjectCopy& copy, Address at, std::size_t size);

 private:
  static constexpr std::size_t kPage = 4'096;
  struct Page {
    Address start = 0;
    bool filled = false;
    std::array<std::byte, kPage> bytes;
  };

  const Page* page_with(Address at, std::size_t size);

  Memory& memory_;
  bool ahead_;
  // Frames of Python functions lie in the interpreter's own stack, callers at lower addresses.
  // Frames of the interpreter itself lie in the thread's stack, callers at higher addresses. A call
  // that passes through C has both.
  std::array<Page, 2> pages_;
  std::size_t last_ = 0;  // the page used last; the other one is replaced
};

}  // namespace lockstep::stacks
