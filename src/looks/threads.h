// The threads of ranks as texts that travel from agents to commands. Pure.
#pragma once

#include "codec/json_fields.h"
#include "looks/rank_look.h"
#include "stacks/native_thread.h"

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::looks {

constexpr std::size_t kMostThreadTexts = 256;  // of a rank

// What a thread does below Python.
struct NativeText {
  std::string state = {};                 // "S"
  bool runs = false;                      // then nothing below is known
  std::string call = {};                  // "poll"; "": not known
  std::string wchan = {};                 // "do_sys_poll"; "": hidden
  std::string at = {};                    // "libc.so.6+0xfe2ad (poll)"; "": not known
  std::vector<std::string> callers = {};  // possible ones, the innermost first
};

// A thread of a rank, or several that do the same. Frames are lines like "train.py:88 in step", the
// innermost first.
struct ThreadText {
  std::string name = {};  // "main thread", "thread 8124", "loader, pid 8131"
  std::string kind = {};  // "main thread", "thread", "loader", "child", "thread outside Python"
  int count = 1;          // threads that do the same
  bool holds_gil = false;
  bool whole = true;  // false: the stack was cut, or changed while it was read
  std::vector<std::string> frames = {};
  std::optional<NativeText> native = {};
};

struct RankText {
  int rank = 0;
  pid_t pid = 0;
  std::string state = {};  // "S", with the kernel's function: "S, futex_do_wait"
  std::string doing = {};  // "collective all_reduce"
  std::vector<ThreadText> threads = {};
  std::string ranks = {};  // "0-6": these ranks have the same threads; "": only `rank`
  int left_out = 0;        // threads of each of these ranks that are not in the list
  // The last lines of its output, if the question was about this rank alone.
  std::vector<std::string> output = {};
};

void fields(codec::JsonFields& io, NativeText& native);
void fields(codec::JsonFields& io, ThreadText& thread);
void fields(codec::JsonFields& io, RankText& rank);

// The threads of a rank, as they were read.
struct RankThreads {
  std::vector<stacks::ThreadStack> python = {};
  std::vector<stacks::NativeThread> native = {};  // of the rank's process
  // By the pid of a child of the rank: its main thread.
  std::vector<stacks::NativeThread> children = {};
  std::size_t left_out = 0;
};

// Makes the texts of a rank's threads, and of the main threads of its descendants.
RankText rank_text(const RankLook& look, const RankThreads& threads);

// Joins threads that do the same, and then ranks with the same threads. Callers, ids and CPU states
// of threads make no difference. The result is ordered by its lowest ranks.
std::vector<RankText> fold_ranks(std::vector<RankText> ranks);

// Cuts the list of threads to about this many bytes, and counts the others as left out.
void bound_threads(RankText& rank, std::size_t bytes);
std::size_t size_of(const RankText& rank);

// The ranks of a text, sorted.
std::vector<int> ranks_of(const RankText& text);

// The text for a person, a line for each frame.
std::string threads_text(const RankText& rank);

}  // namespace lockstep::looks
