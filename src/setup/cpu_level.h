// The x86-64 levels of instruction sets (v1 to v4), and the compiler arguments for code that runs
// on every CPU of a level. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

// A level is 1 to 4 (x86-64-v1 to x86-64-v4). Code compiled for kNative runs only on CPUs like this
// machine's.
inline constexpr int kNative = 0;
inline constexpr int kHighestLevel = 4;

// Returns the highest level whose flags are all among `flags`, the flags line of /proc/cpuinfo: 1
// to 4.
int cpu_level(std::string_view flags);
// Returns the lowest level among all CPUs of a /proc/cpuinfo, or kNative if the CPU is not x86-64.
int cpu_level_in(std::string_view cpuinfo);

// Reads "native", "x86-64-v3" and the like. Returns the lowest level of a comma-separated list. The
// error names the unknown word.
Result<int> read_isa(std::string_view text);
// Returns the level as --isa takes the word: "native", "x86-64", "x86-64-v3".
std::string isa_text(int level);
// Returns the argument of -march= for a level. gcc before 11 has no names for levels, so such a gcc
// gets the name of a CPU of that level.
std::string march_of(int level, int gcc_major);

// Replaces -march=native by -march=`march`, and lowers DeepSpeed's macros for vector width to what
// the level has. Sets `changed` if any argument was changed.
std::vector<std::string> for_level(std::vector<std::string> words, int level,
                                   const std::string& march, bool& changed);

}  // namespace lockstep::setup
