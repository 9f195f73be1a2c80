#include "setup/cpu_level.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::setup {
namespace {

// The flags of each level beyond those of the level below, by Linux's names.
constexpr std::array<std::string_view, 3> kFlags = {
    "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "avx512f avx512bw avx512cd avx512dq avx512vl",
};
// CPUs with the same instructions as levels 1 to 4, for a gcc that has no names for levels.
constexpr std::array<std::string_view, 4> kOldNames = {"x86-64", "nehalem", "haswell",
                                                       "skylake-avx512"};
constexpr int kNamesLevels = 11;  // the first gcc with names for levels
constexpr std::string_view kStem = "x86-64";

}  // namespace

int cpu_level(std::string_view flags) {
  const std::vector<std::string> here = split(flags, ' ');
  int level = 1;
  for (const std::string_view wanted : kFlags) {
    for (const std::string& flag : split(wanted, ' '))
      if (std::find(here.begin(), here.end(), flag) == here.end()) return level;
    ++level;
  }
  return level;
}

int cpu_level_in(std::string_view cpuinfo) {
  // Code may run on any CPU of the machine, so the weakest one decides.
  int lowest = kNative;
  for (const std::string& line : split(cpuinfo, '\n')) {
    if (!line.starts_with("flags")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view flags = std::string_view(line).substr(colon + 1);
    if (flags.find(" lm ") == std::string_view::npos)
      continue;  // a 32-bit CPU: "lm" (long mode) is the 64-bit flag
    const int level = cpu_level(flags);
    lowest = lowest == kNative ? level : std::min(lowest, level);
  }
  return lowest;
}

Result<int> read_isa(std::string_view text) {
  int lowest = kHighestLevel + 1;
  for (const std::string& word : split(text, ',')) {
    int level = -1;
    if (word == "native")
      level = kHighestLevel;  // prepare_wheel() lowers the level to this machine's
    for (int each = 1; each <= kHighestLevel; ++each)
      if (word == isa_text(each) || word == fmt::format("{}-v{}", kStem, each)) level = each;
    if (level < 0)
      return fail(Errc::invalid_input,
                  fmt::format("'{}' is not an instruction set", printable(word)),
                  "write native, x86-64, x86-64-v2, x86-64-v3 or x86-64-v4");
    if (text == "native") return kNative;
    lowest = std::min(lowest, level);
  }
  return lowest;
}

std::string isa_text(int level) {
  if (level == kNative) return "native";
  return level == 1 ? std::string(kStem) : fmt::format("{}-v{}", kStem, level);
}

std::string march_of(int level, int gcc_major) {
  // gcc 11 is the first compiler with names for levels; 0 means an unknown version.
  if (level == kNative || gcc_major == 0 || gcc_major >= kNamesLevels) return isa_text(level);
  return std::string(kOldNames.at(static_cast<std::size_t>(level) - 1));
}

std::vector<std::string> for_level(std::vector<std::string> words, int level,
                                   const std::string& march, bool& changed) {
  // DeepSpeed's op_builder derives these macros from the CPU that compiles, not from -march.
  constexpr std::string_view kWide = "-D__AVX512__";
  constexpr std::string_view kHalf = "-D__AVX256__";
  changed = false;
  if (level == kNative) return words;
  for (std::string& word : words) {
    const std::string before = word;
    if (word == "-march=native") word = "-march=" + march;
    if (word == "-mtune=native") word = "-mtune=generic";
    if (word == kWide && level < 4) word = kHalf;
    if (word == kHalf && level < 3) word = "-D__SCALAR__";
    changed = changed || word != before;
  }
  return words;
}

}  // namespace lockstep::setup
