// The table of routes for a worker's streams.
#include "logs/capture_plan.h"

#include "logs/log_file.h"

#include <utility>

namespace lockstep::logs {
namespace {
bool is_shown(const CaptureRules& rules, int local_rank, int global_rank) {
  return !rules.shown || rules.shown->local_ranks.contains(local_rank) ||
         rules.shown->global_ranks.contains(global_rank);
}

bool is_given(const StdSpec& spec) {
  return spec.every != Std::none || !spec.by_rank.empty();
}

// keep_tail: the stream is stderr and feeds the failure report, so it must pass through the agent.
Route route_of(bool redirected, bool teed, bool shown, bool has_dir, bool keep_tail) {
  if (teed && shown) return Route::tee;
  if ((teed || redirected) && has_dir) return Route::file;
  if (!shown) return keep_tail ? Route::keep : Route::discard;
  return keep_tail ? Route::passthrough : Route::inherit;
}
}  // namespace

bool CaptureRules::keeps_logs() const {
  return is_given(redirects) || is_given(tee) || !duplicate_stdout_filters.empty() ||
         !duplicate_stderr_filters.empty();
}

Result<FilteredFiles> open_filtered_files(const CaptureRules& rules, const AttemptDir& dir) {
  FilteredFiles files;
  if (!rules.duplicate_stdout_filters.empty()) {
    LOCKSTEP_TRY_ASSIGN(files.out, LogFile::open(dir.filtered_stdout(), rules.max_log_size));
  }
  if (!rules.duplicate_stderr_filters.empty()) {
    LOCKSTEP_TRY_ASSIGN(files.err, LogFile::open(dir.filtered_stderr(), rules.max_log_size));
  }
  return files;
}

CapturePlan plan_capture(const CaptureRules& rules, const AttemptDir* dir,
                         const FilteredFiles& filtered, int local_rank, int global_rank,
                         std::string prefix) {
  const Std redirects = rules.redirects.of(local_rank);
  const Std tee = rules.tee.of(local_rank);
  const bool shown = is_shown(rules, local_rank, global_rank);
  CapturePlan plan;
  plan.prefix = std::move(prefix);
  plan.source = {local_rank, global_rank};
  plan.out.route =
      route_of(has(redirects, Std::out), has(tee, Std::out), shown, dir != nullptr, false);
  plan.err.route = route_of(has(redirects, Std::err), has(tee, Std::err), shown, dir != nullptr,
                            rules.keep_stderr_tail);
  // tag_all gives console output a prefix. Such a stream is not teed, so it gets no log file below.
  for (StreamPlan* stream : {&plan.out, &plan.err}) {
    const bool untagged = stream->route == Route::inherit || stream->route == Route::passthrough;
    if (rules.tag_all && untagged) stream->route = Route::tee;
  }
  const auto complete = [&](StreamPlan& stream, bool teed, std::string path,
                            const std::vector<std::string>& filters,
                            const std::shared_ptr<LogFile>& file) {
    if ((stream.route == Route::tee && teed) || stream.route == Route::file)
      stream.path = std::move(path);
    if (!stream.path.empty()) stream.max_size = rules.max_log_size;
    if (stream.route != Route::tee || !teed || !file) return;
    stream.filters = filters;
    stream.filtered = file;
  };
  complete(plan.out, has(tee, Std::out), dir != nullptr ? dir->stdout_log(local_rank) : "",
           rules.duplicate_stdout_filters, filtered.out);
  complete(plan.err, has(tee, Std::err), dir != nullptr ? dir->stderr_log(local_rank) : "",
           rules.duplicate_stderr_filters, filtered.err);
  return plan;
}

}  // namespace lockstep::logs
