// Applies --hang-after, --on-hang, --progress and --dcgm-job-dir.
#include "base/text.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace lockstep::launch {
namespace {

// A look at the ranks is made once a second, so a shorter limit could not be kept.
constexpr double kLeastLimit = 2;

Status apply_hang_after(const std::string& text, HangConfig& hang) {
  if (text == "auto" || text == "off") {
    hang.after = text == "off" ? HangConfig::After::never : HangConfig::After::automatic;
    return {};
  }
  const auto seconds = parse_float(text);
  if (!seconds || !(*seconds >= kLeastLimit && *seconds <= static_cast<double>(kYearInSeconds)))
    return fail(Errc::invalid_input,
                fmt::format("--hang-after must be auto, off, or a number of seconds from {} on, "
                            "got {}",
                            kLeastLimit, printable(text)));
  hang.after = HangConfig::After::given;
  hang.limit =
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(*seconds));
  return {};
}

}  // namespace

Status apply_hang(const RawOptions& raw, LaunchConfig& config) {
  LOCKSTEP_TRY(apply_hang_after(raw.hang_after, config.hang));
  if (raw.on_hang == "report") {
    config.hang.then = HangConfig::Then::report;
  } else if (raw.on_hang == "restart") {
    config.hang.then = HangConfig::Then::restart;
  } else if (raw.on_hang == "end") {
    config.hang.then = HangConfig::Then::end;
  } else {
    return fail(Errc::invalid_input,
                fmt::format("--on-hang must be one of report, restart, end, got {}",
                            printable(raw.on_hang)));
  }
  if (config.hang.then == HangConfig::Then::restart && config.max_restarts == 0)
    return fail(Errc::invalid_input, "--on-hang restart needs restarts, but --max-restarts is 0",
                "give --max-restarts, or --on-hang end");
  if (config.hang.after == HangConfig::After::never && raw.on_hang != "report")
    return fail(Errc::invalid_input,
                fmt::format("--on-hang {} needs a watch, but --hang-after is off", raw.on_hang),
                "leave one of the two options out");
  if (raw.progress) {
    LOCKSTEP_TRY_ASSIGN(auto pattern, logs::StepPattern::make(*raw.progress));
    config.progress = std::move(pattern);
  }
  config.dcgm_job_dir = raw.dcgm_job_dir;
  return {};
}

}  // namespace lockstep::launch
