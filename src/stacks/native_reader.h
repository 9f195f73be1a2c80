// What the threads of a process do below Python, read from /proc and from its memory. The process
// is neither stopped nor told, and gets no signal. Reading the list of its mappings may wait, as
// remote_memory.h says.
#pragma once

#include "stacks/native_place.h"
#include "stacks/native_thread.h"
#include "stacks/reason.h"

#include <tl/expected.hpp>

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace lockstep::stacks {

struct NativeQuestion {
  bool all = true;     // false: the main thread alone
  bool memory = true;  // false: only what the kernel tells of each thread
  std::chrono::steady_clock::time_point end = {};  // threads that come later are left out
};

struct NativeThreads {
  std::vector<NativeThread> threads = {};  // the main thread first; at most kMostThreads
  std::size_t left_out = 0;
};

class NativeReader {
 public:
  tl::expected<NativeThreads, Reason> read(pid_t pid, const NativeQuestion& question);

 private:
  PlaceNames names_;
};

}  // namespace lockstep::stacks
