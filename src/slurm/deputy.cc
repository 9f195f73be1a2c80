#include "slurm/deputy.h"

#include "base/log.h"
#include "base/text.h"
#include "io/fd.h"
#include "proc/tool_output.h"
#include "slurm/scontrol_command.h"
#include "slurm/tools.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::string_view kLog = ".log";

}  // namespace

Deputy::Deputy(io::Loop& loop, std::string folder, WatchFolder watch, BatchState state)
    : loop_(loop), run_(loop, std::move(folder)), watch_(std::move(watch)) {
  before_ = state.host;
  state.host = variable("SLURMD_NODENAME");
  run_.state() = std::move(state);
  log::warning("{}, where the script of job {} ran, is gone; {} speaks for the job now", before_,
               run_.state().job, run_.state().host);
  if (const Status kept = run_.keep(); !kept) log::error("{}", kept.error().message);
  if (const auto script = run_.folder().of_script()) take_over_script(*script);
}

// Its batch step died as well, and knew what is to become of the job.
void Deputy::take_over_script(const std::string& folder) {
  auto state = JobFolder(folder).state();
  if (!state || state->run != run_.state().run || state->stage != Stage::running) return;
  job_.emplace(loop_, folder);
  job_->state() = std::move(*state);
  job_->state().host = run_.state().host;
  run_.state().lead_s = job_->state().lead_s;
}

void Deputy::look() {
  watch_.beat(kLease, fmt::format("{} {}", run_.state().host, ++looks_));
  const std::vector<std::string> names = watch_.names();
  for (const std::string& name : names)
    if (name.ends_with(kLog)) collect(name);
  look_at_peers(names);
  if (job_) script_.look(WatchFolder(job_->folder(), run_.state().run, 0).read(kLease));
  stop_in_time();
}

// One process alone writes into the output: on a network file system the lines of several would
// fall on each other.
void Deputy::collect(const std::string& name) {
  constexpr std::size_t kMost = 4UL << 20;
  const io::Fd from(open(watch_.at(name).c_str(), O_RDONLY | O_CLOEXEC));
  // Others may have changed what lies there: it waits for no reader of a pipe.
  const io::Fd to(
      open(run_.state().output.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!from || !to) return;
  std::string bytes(kMost, 0);
  std::int64_t& at = collected_[name];
  const ssize_t got = pread(from.get(), bytes.data(), bytes.size(), at);
  if (got <= 0) return;
  const std::string_view read(bytes.data(), static_cast<std::size_t>(got));
  const std::size_t newline = read.rfind('\n');
  const std::size_t whole = newline == std::string_view::npos ? read.size() : newline + 1;
  if (io::write_all(to.get(), read.substr(0, whole), run_.state().output))
    at += static_cast<std::int64_t>(whole);
}

void Deputy::look_at_peers(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == kLease || name.ends_with(kLog) || name == run_.state().host) continue;
    Peer& peer = peers_[name];
    const std::string beat = watch_.read(name);
    peer.silence.look(beat);
    peer.ended = beat.find(" ended") != std::string::npos;
  }
}

// The others look every second whether somebody has claimed the job.
bool Deputy::is_alone() const {
  constexpr int kTimeToAppear = 5;
  return looks_ >= kTimeToAppear && std::all_of(peers_.begin(), peers_.end(), [](const auto& each) {
           return each.second.ended || each.second.silence.is_gone();
         });
}

// The signal before the time limit went to the batch step alone.
void Deputy::stop_in_time() {
  constexpr int kAskAgain = 60;
  if (run_.state().lead_s == 0 || lead_) return;
  if (end_s_ == 0 && looks_ % kAskAgain == 1) ask_for_the_end();
  if (end_s_ == 0 || time(nullptr) + run_.state().lead_s < end_s_) return;
  // Somebody may have given the job more time.
  ask_for_the_end();
  if (end_s_ == 0 || time(nullptr) + run_.state().lead_s < end_s_) return;
  log::info("the time limit is near: the workers are being stopped");
  lead_ = true;
  if (auto stop = run_.start({"scancel", "--signal=TERM", run_.state().job}))
    helpers_.push_back(std::move(*stop));
}

void Deputy::ask_for_the_end() {
  constexpr std::chrono::seconds kPatience{3};
  const auto told =
      proc::tool_output(scontrol_job_command(run_.state().job),
                        environment_for_tools(proc::own_environment()), {.patience = kPatience});
  end_s_ = told ? parse_int(oneline_value(told->out, "EndTime")).value_or(0) : 0;
}

// Those that have somebody who speaks for them; each ends its own ranks.
bool Deputy::has_other_launches() const {
  for (const std::string& path : job_->folder().launches()) {
    if (path == run_.folder().path()) continue;
    const auto state = JobFolder(path).state();
    if (state && state->run == run_.state().run && state->stage == Stage::running &&
        state->host != before_)
      return true;
  }
  return false;
}

// Then the launch alone was killed, and the script says what is next.
bool Deputy::script_lives() {
  constexpr int kLongest = 20;
  for (int i = 0; i < kLongest && !script_.is_gone(); ++i) {
    job_->pause(std::chrono::seconds(1));
    look();
  }
  return !script_.is_gone();
}

Result<int> Deputy::conclude(BatchFacts facts) {
  facts.lead_signal = lead_;
  Verdict verdict = judge(facts, run_.reports(), nodes_of_job());
  auto code = run_.conclude(verdict, !job_);
  look();  // its words come into the output
  JobRun& job = job_ ? *job_ : run_;
  if (job_) {
    // The last one speaks for all.
    if (script_lives() || has_other_launches()) return code;
    verdict.unfit = run_.unfit();
    code = job.conclude(judge_orphan(std::move(verdict), before_), true);
    look();
  }
  const bool is_over = job.state().stage == Stage::ended || !job.state().next.empty();
  if (!code || !is_over) return code;
  // Nothing else would end it before its time limit. One that Slurm has stopped, and has queued
  // again perhaps, is left alone. The controller may be away.
  constexpr int kTries = 120;
  constexpr std::chrono::seconds kPause{5};
  for (int i = 0; i < kTries && job.call_tool({"scancel", "--state=RUNNING", job.state().job}) != 0;
       ++i)
    job.pause(kPause);
  return code;
}

}  // namespace lockstep::slurm
