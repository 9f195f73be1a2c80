// The x86-64 levels of instruction sets that compilers know, and a compiler's arguments changed so
// that what it makes runs on every CPU of a level. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

// Of x86-64-v1 to x86-64-v4. What is compiled with kNative is for CPUs like this machine's.
inline constexpr int kNative = 0;
inline constexpr int kHighestLevel = 4;

// What a CPU with the `flags` of /proc/cpuinfo has: 1 to 4.
int cpu_level(std::string_view flags);
// The lowest of all CPUs in a /proc/cpuinfo; kNative: it is no x86-64.
int cpu_level_in(std::string_view cpuinfo);

// "native", "x86-64-v3"; of several, with commas between them, the lowest. Errors name the word.
Result<int> read_isa(std::string_view text);
std::string isa_text(int level);
// What gcc calls the level; before gcc 11 it has no names for them and is given a CPU's.
std::string march_of(int level, int gcc_major);

// -march=native becomes the level's, and DeepSpeed's macros that say how wide vectors are do not
// say more than it has. True in `changed` where an argument was changed.
std::vector<std::string> for_level(std::vector<std::string> words, int level,
                                   const std::string& march, bool& changed);

}  // namespace lockstep::setup
