// The last run of each command of a user on one machine, for the comparison in the last line of a
// job. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

struct PastRun {
  std::string key = {};      // a digest of the command, whose arguments may be secrets
  std::string outcome = {};  // the word that --report uses
  std::int64_t ended_ms = 0;
  std::int64_t duration_ms = 0;
  int restarts = 0;
  int goodput = -1;  // percent; -1: the run had none
};

// The number of commands that are kept. The command that ended first is forgotten first.
inline constexpr std::size_t kMostPastRuns = 64;
inline constexpr std::size_t kMostPastRunBytes = 64UL << 10;  // of their file

// Returns the runs that a file holds. A damaged file, or a file of another version, holds none.
std::vector<PastRun> read_past_runs(std::string_view text);
std::string print_past_runs(const std::vector<PastRun>& runs);

// Puts a run in the place of the last run of its command. Returns that last run.
std::optional<PastRun> replace_past_run(std::vector<PastRun>& runs, const PastRun& run);

// "3 h 20 min ago: 2 h 10 min, goodput 88 %", "5 min ago: failed after 12.0 s, with 1 restart".
std::string past_run_words(const PastRun& run, std::int64_t now_ms);

}  // namespace lockstep::agent
