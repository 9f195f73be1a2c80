#include "jobs/on_slurm/wheel_records.h"

#include "base/environment.h"
#include "io/replace_file.h"
#include "jobs/on_slurm/job_wheels.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoted = ".json";
constexpr std::string_view kFailed = ".failed";
constexpr std::chrono::milliseconds kPause{100};

bool is_there(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

// The steps of a user's own script share the folder of the wheels, and so do the rows of a sweep:
// put the number of the step, or of the row's task, into the names.
WheelRecords::WheelRecords(const slurm::JobFolder& folder, int run, std::string_view step)
    : folder_(folder.at(kWheelsFolder)),
      begin_((folder.is_in_row() ? "task" + env_text("SLURM_JOB_ID") + "." : "") +
             (step.empty() || step == "0" ? fmt::format("{}-", run)
                                          : fmt::format("{}.{}-", run, step))) {}

std::string WheelRecords::path(const std::string& node, std::string_view end) const {
  return fmt::format("{}/{}{}{}", folder_, begin_, node, end);
}

// Write the failure first: other nodes take rows without a failure as success.
void WheelRecords::note(const std::string& node, const nlohmann::ordered_json& rows,
                        const Status& done) const {
  if (!done) (void)io::replace_file(path(node, kFailed), done.error().message + "\n");
  (void)io::replace_file(path(node, kNoted), codec::print_json(rows) + "\n");
}

int WheelRecords::failed() const {
  int failed = 0;
  std::error_code trouble;
  for (fs::directory_iterator at(folder_, trouble), end; !trouble && at != end;
       at.increment(trouble))
    if (const std::string name = at->path().filename().string();
        name.starts_with(begin_) && name.ends_with(kFailed))
      ++failed;
  return failed;
}

std::vector<std::string> WheelRecords::failed_first(const std::vector<std::string>& nodes,
                                                    std::chrono::milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::vector<std::string> failed;
  for (const std::string& node : nodes) {
    while (!is_there(path(node, kNoted))) {
      if (std::chrono::steady_clock::now() >= until) return failed;
      std::this_thread::sleep_for(kPause);
    }
    if (!is_there(path(node, kFailed))) return failed;
    failed.push_back(node);
  }
  return failed;
}

}  // namespace lockstep::jobs::on_slurm
