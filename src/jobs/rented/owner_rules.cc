#include "jobs/rented/owner_rules.h"

#include "base/exit_codes.h"
#include "base/text.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>

namespace lockstep::jobs::rented {
namespace {

constexpr int kUsage = 2;
constexpr int kSignalBase = 128;
constexpr std::size_t kMostLine = 1000;
constexpr std::string_view kErrorMark = "error: ";
// A begin whose answer was lost may be under way on the host for so long.
constexpr std::int64_t kBeginMs = 15LL * 60'000;
constexpr std::int64_t kKeptMs = 30LL * 86'400'000;

}  // namespace

Error error_of_ask(const std::string& host, int code, std::string_view err, int stop) {
  if (stop != 0 && code == kSignalBase + stop)
    return {.code = Errc::canceled, .message = "stopped by the user", .hint = {}, .sys = stop};
  std::string line(strip(err));
  line.erase(0, line.rfind('\n') + 1);
  // The name of the host's command means nothing to this user.
  if (const auto mark = line.find(kErrorMark); mark != std::string::npos)
    line.erase(0, mark + kErrorMark.size());
  return {.code = code == kUsage       ? Errc::invalid_input
                  : code > kSignalBase ? Errc::unavailable
                                       : Errc::denied,
          .message =
              fmt::format("{}: {}", host, line.empty() ? "no answer" : printable(line, kMostLine)),
          .hint = {},
          .sys = std::max(code - kSignalBase, 0)};
}

std::string error_line(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

FailedBegin after_failed_begin(const Error& error, Asked asked, std::optional<bool> known) {
  if (asked == Asked::never || error.code == Errc::denied || error.code == Errc::invalid_input)
    return FailedBegin::forget;
  if (asked == Asked::unanswered) return FailedBegin::keep;
  // The command there is over: without a record there nothing began.
  if (known == false) return FailedBegin::forget;
  return error.code == Errc::canceled && is_cancel(error.sys) ? FailedBegin::cancel
                                                              : FailedBegin::keep;
}

bool is_cancel(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT;
}

OwnedStep next_step(const cloud::RentedJob& job, const OwnedState& there, std::int64_t now_ms) {
  if (there.known) return there.ended ? OwnedStep::settle : OwnedStep::wait;
  if (job.stage != cloud::RentedJob::Stage::renting) return OwnedStep::bring_and_forget;
  return now_ms - job.began_ms < kBeginMs ? OwnedStep::wait : OwnedStep::forget;
}

int settled_code(const OwnedState& there, bool all_brought) {
  return there.code == 0 && !all_brought ? kExitFailed : there.code;
}

int code_for_user(int code, int canceled_by) {
  return canceled_by != 0 && code == kSignalBase + SIGINT ? kSignalBase + canceled_by : code;
}

JobState ended_state(int code, bool was_canceled) {
  if (code == 0) return JobState::succeeded;
  return was_canceled ? JobState::canceled : JobState::failed;
}

// The job may have run for longer than a month, so its log counts, and not its begin.
bool is_long_over(const cloud::RentedJob& job, std::optional<std::int64_t> log_ms,
                  std::int64_t now_ms) {
  return job.stage == cloud::RentedJob::Stage::ended &&
         log_ms.value_or(job.began_ms) < now_ms - kKeptMs;
}

Status check_name_is_of(const std::string& rental, const std::string& name,
                        const std::optional<std::string>& there, bool elsewhere) {
  if (!elsewhere && there.value_or(rental) == rental) return {};
  return fail(Errc::unavailable, fmt::format("'{}' is another rental now", printable(name, 63)));
}

bool Unfollowed::look(bool followed, Time now) {
  if (followed) since_.reset();
  if (!followed && !since_) since_ = now;
  return !followed && now - *since_ >= kPatience;
}

}  // namespace lockstep::jobs::rented
