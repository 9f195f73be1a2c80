// Reads, prints and words the last runs.
#include "agent/past_runs.h"

#include "agent/job_history.h"
#include "base/duration_text.h"
#include "codec/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::agent {

static void fields(codec::JsonFields& io, PastRun& run) {
  // Times of a damaged file must not overflow in sums.
  constexpr codec::JsonRange kTime{0, 1LL << 50};
  io("key", run.key);
  io("outcome", run.outcome);
  io("ended_ms", run.ended_ms, kTime);
  io("duration_ms", run.duration_ms, kTime);
  io("restarts", run.restarts, {0, 1'000'000});
  io("goodput", run.goodput, {-1, 100});
}

struct PastRunFile {
  std::vector<PastRun> runs = {};
};

static void fields(codec::JsonFields& io, PastRunFile& file) {
  io("runs", file.runs);
}

std::vector<PastRun> read_past_runs(std::string_view text) {
  constexpr codec::JsonRules kRules{.strict = false, .list = kMostPastRuns, .printable = 64};
  PastRunFile file;
  const auto json = codec::parse_json(text, {.bytes = kMostPastRunBytes, .depth = 4});
  if (!codec::read_fields(json, file, kRules)) return {};
  return std::move(file.runs);
}

std::string print_past_runs(const std::vector<PastRun>& runs) {
  return codec::print_json(codec::write_fields(PastRunFile{runs})) + "\n";
}

std::optional<PastRun> replace_past_run(std::vector<PastRun>& runs, const PastRun& run) {
  std::optional<PastRun> last;
  const auto is_same = [&run](const PastRun& other) { return other.key == run.key; };
  if (const auto found = std::find_if(runs.begin(), runs.end(), is_same); found != runs.end()) {
    last = std::move(*found);
    runs.erase(found);
  }
  runs.push_back(run);
  if (runs.size() > kMostPastRuns) runs.erase(runs.begin());
  return last;
}

std::string past_run_words(const PastRun& run, std::int64_t now_ms) {
  const bool succeeded = run.outcome == "succeeded";
  const bool interrupted = run.outcome == "interrupted";
  std::string words = fmt::format("{} ago: {}{}", about_text((now_ms - run.ended_ms) / 1000),
                                  succeeded     ? ""
                                  : interrupted ? "interrupted after "
                                                : "failed after ",
                                  duration_text(run.duration_ms));
  if (run.restarts > 0)
    words += fmt::format(", with {} restart{}", run.restarts, run.restarts == 1 ? "" : "s");
  if (run.goodput >= 0) words += fmt::format(", goodput {} %", run.goodput);
  return words;
}

}  // namespace lockstep::agent
