// What the batch process does for a script of the user's own.
#include "base/text.h"
#include "io/fd.h"
#include "proc/tool_output.h"
#include "slurm/batch.h"
#include "slurm/old_environment.h"
#include "slurm/old_script.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace lockstep::slurm {
namespace {

// The folders of launches, the latest first.
std::vector<std::string> launches(const JobFolder& folder) {
  std::vector<std::int64_t> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.at("launches"), error))
    if (const auto number = parse_int(entry.path().filename().native())) numbers.push_back(*number);
  std::sort(numbers.rbegin(), numbers.rend());
  std::vector<std::string> paths;
  paths.reserve(numbers.size());
  for (const std::int64_t number : numbers)
    paths.push_back(folder.at("launches/" + std::to_string(number)));
  return paths;
}

}  // namespace

std::vector<std::string> Batch::environment_of_script() const {
  Variables variables = variables_of(proc::own_environment());
  int spares = 0;
  if (const auto text = io::read_file(run_.folder().at("launch.json")))
    if (const auto settings = settings_from_text(*text)) spares = settings->spares;
  hide_spares(nodes_of_job(), spares, variables);
  show_stand_ins(run_.folder().path(), "bin", variables);
  return environment_of(variables);
}

// To the script's shell alone, as Slurm does with a batch script.
void Batch::pass_on(int number) {
  if (step_ && step_->alive())
    (void)syscall(SYS_pidfd_send_signal, step_->pidfd(), number, nullptr, 0);
}

std::optional<Verdict> Batch::last_launch() const {
  const int run = run_number(run_.folder());
  for (const std::string& path : launches(run_.folder())) {
    const JobFolder launch(path);
    const auto state = launch.state();
    if (!state || state->run != run) continue;
    std::vector<NodeReport> reports;
    for (const std::string& text : launch.reports(run))
      if (auto report = read_report(text)) reports.push_back(std::move(*report));
    return judge({.step_code = state->code}, reports, nodes_of_job());
  }
  return std::nullopt;
}

// A shell that was stopped ends at once; its launches have ranks that save what they have.
void Batch::await_launches() {
  constexpr std::chrono::milliseconds kPause{100};
  constexpr int kTries = 3000;  // Slurm's KillWait is over before
  if (!facts_.stop_signal && !facts_.lead_signal) return;
  const int run = run_number(run_.folder());
  for (int i = 0; i < kTries; ++i) {
    bool running = false;
    for (const std::string& path : launches(run_.folder())) {
      const auto state = JobFolder(path).state();
      running = running || (state && state->run == run && state->stage == Stage::running);
    }
    if (!running) return;
    run_.pause(kPause);
  }
}

}  // namespace lockstep::slurm
