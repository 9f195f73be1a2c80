// What one rank does, as a row of a table: for `lockstep top`, the status page and metrics. Pure.
#pragma once

#include "base/error.h"
#include "looks/doing.h"
#include "looks/motion.h"
#include "looks/place.h"
#include "looks/rank_look.h"
#include "looks/verdict.h"

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

// The states of one rank. A rank that is waited for in a hung job is "hung".
inline constexpr std::array<std::string_view, 7> kRankStateWords = {
    "starting", "training", "waiting", "quiet", "hung", "stopped", "gone"};

// All texts are printable and bounded.
struct RankRow {
  int rank = 0;
  std::string node = {};
  pid_t pid = 0;           // 0: the rank is elsewhere or has ended: no figures
  std::string state = {};  // a word of kRankStateWords
  std::string doing = {};  // "all_reduce", "data loader"; "": the script's own code
  std::string where = {};  // "step, train.py:88"; "": no readable stack
  double cpu = 0;          // cores in use by the last look: the rank and its descendants
  // Resident memory of the rank and its descendants. Shared pages count in each process.
  std::int64_t memory_bytes = 0;
  // The shares of the last minute's looks that found the rank waiting for other ranks, and for its
  // data loader. nullopt: too few looks.
  std::optional<double> waiting_share = {};
  std::optional<double> input_share = {};
  int loaders = 0;
  // The GPU that the rank uses, by a guess, and how this GPU is used. nullopt: not known.
  std::optional<std::int64_t> gpu = {};
  std::optional<double> gpu_share = {};  // 0 to 1
  std::optional<std::int64_t> gpu_memory_bytes = {};
  std::optional<std::int64_t> gpu_memory_total_bytes = {};
  std::optional<double> gpu_watts = {};
  std::int64_t output_age_ms = -1;  // -1: no output yet, or the agent does not read the output
  std::string last_line = {};       // the newest whole line
  std::optional<std::int64_t> step = {};
  std::optional<double> steps_per_s = {};
  bool step_guessed = false;  // the step was guessed from the output

  friend bool operator==(const RankRow&, const RankRow&) = default;
};
inline constexpr std::size_t kMostLastLine = 200;

// The rows of one node.
struct NodeRows {
  std::string node = {};
  std::string command = {};  // "train.py"
  int attempt = 1;
  int world = 0;               // ranks of the job
  std::string state = {};      // of the job: a word of kVerdictStateWords
  std::string words = {};      // one line
  std::string straggler = {};  // one line; "": no rank stands out
  bool gpus_pending = false;   // the GPUs were asked a moment ago, and have not answered yet
  std::vector<RankRow> rows = {};

  friend bool operator==(const NodeRows&, const NodeRows&) = default;
};

std::string rows_json(const NodeRows& rows);
// Reads the rows of another version, or of a host that may be hostile: texts become printable
// lines, and numbers stay within bounds. Fails with Errc::corrupt.
Result<NodeRows> read_rows(std::string_view text);
// Returns whether rows of the same node and the same ranks are in the list.
bool is_known(const std::vector<NodeRows>& all, const NodeRows& rows);

// Puts the nodes into the order of their lowest ranks.
void sort_nodes(std::vector<NodeRows>& all);

// Adds a row for each rank of a fold that has none: ranks of other nodes, of which only state,
// doing and where are known.
void add_ranks(NodeRows& rows, const Fold& fold, const Verdict& verdict);

// Returns the state of a rank that has not moved for `quiet`: a word of kRankStateWords.
std::string_view rank_state(int rank, const Activity& activity, Millis quiet,
                            const Verdict& verdict);
// Returns "step, train.py:88". "": not known.
std::string where_words(const Place& place);

// Makes the parts of a row that follow from a look: rank, pid, state, doing and where.
RankRow row_of(const RankLook& look, const Activity& activity, const Motion& motion,
               const Verdict& verdict);

}  // namespace lockstep::looks
