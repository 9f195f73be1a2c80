#include "slurm/deputy.h"

#include "base/environment.h"
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

Deputy::Deputy(io::Loop& loop, std::string folder, WatchFolder watch, BatchState state)
    : loop_(loop), run_(loop, std::move(folder)), watch_(std::move(watch)) {
  before_ = state.host;
  state.host = env_text("SLURMD_NODENAME");
  run_.state() = std::move(state);
  log::warning("{}, where the script of job {} ran, is gone; {} speaks for the job now", before_,
               run_.state().job, run_.state().host);
  if (const Status kept = run_.keep(); !kept) log::error("{}", kept.error().message);
  // The lines about the end are in this node's log first.
  run_.before_end([this] { collect_all(watch_.names()); });
  if (const auto script = run_.folder().of_script()) take_over_script(*script);
}

// Takes over a user's own script if its batch step died with the launch's node. That batch step
// knew whether the job runs again.
void Deputy::take_over_script(const std::string& folder) {
  auto state = JobFolder(folder).state();
  if (!state || state->run != run_.state().run || state->stage != Stage::running) return;
  job_.emplace(loop_, folder);
  job_->state() = std::move(*state);
  job_->state().host = run_.state().host;
  job_->before_end([this] { collect_all(watch_.names()); });
  run_.state().lead_s = job_->state().lead_s;
}

void Deputy::look() {
  watch_.beat(kLease, lease_text(++looks_, false, run_.state().host));
  const std::vector<std::string> names = watch_.names();
  collect_all(names);
  look_at_peers(names);
  if (job_) script_.look(WatchFolder(job_->folder(), run_.state().run, 0).read(kLease));
  stop_in_time();
}

// Appends new lines of a node's log to the job's output. Only the deputy writes there: network file
// systems do not order appends of several hosts.
void Deputy::collect(const std::string& name) {
  constexpr std::size_t kMost = 4UL << 20;
  const io::Fd from(open(watch_.at(name).c_str(), O_RDONLY | O_CLOEXEC));
  // The path may have become a symlink or a FIFO of another user. Follow no link, and do not block
  // for a reader.
  const io::Fd to(
      open(run_.state().output.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!from || !to) return;
  std::string bytes(kMost, 0);
  std::int64_t& at = collected_[name];
  const ssize_t got = pread(from.get(), bytes.data(), bytes.size(), at);
  if (got <= 0) return;
  const std::string_view read(bytes.data(), static_cast<std::size_t>(got));
  // Copy whole lines, so that lines of different nodes do not mix. A longer line is copied in
  // parts.
  const std::size_t newline = read.rfind('\n');
  const std::size_t whole = newline == std::string_view::npos ? read.size() : newline + 1;
  if (io::write_all(to.get(), read.substr(0, whole), run_.state().output))
    at += static_cast<std::int64_t>(whole);
}

void Deputy::collect_all(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (kind_of_watch_file(name) == WatchFile::log) collect(name);
}

void Deputy::look_at_peers(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (kind_of_watch_file(name) != WatchFile::beat || name == run_.state().host) continue;
    Peer& peer = peers_[name];
    const std::string beat = watch_.read(name);
    peer.beats.look(beat);
    peer.ended = tells_agent_end(beat);
  }
}

// Waits a few looks first: peers notice the new epoch at their next look, and only then appear in
// the folder.
bool Deputy::is_alone() const {
  constexpr int kTimeToAppear = 5;
  return looks_ >= kTimeToAppear && std::all_of(peers_.begin(), peers_.end(), [](const auto& each) {
           return each.second.ended || each.second.beats.is_gone();
         });
}

// Stops the ranks before the time limit. Slurm sent its own signal to the dead batch step only.
void Deputy::stop_in_time() {
  // Looks, one per second or slower.
  constexpr int kAskAgain = 60;
  if (run_.state().lead_s == 0 || lead_) return;
  if (end_s_ == 0 && looks_ % kAskAgain == 1) ask_for_the_end();
  if (end_s_ == 0 || time(nullptr) + run_.state().lead_s < end_s_) return;
  // Ask again before acting: an administrator may have extended the time limit.
  ask_for_the_end();
  if (end_s_ == 0 || time(nullptr) + run_.state().lead_s < end_s_) return;
  log::info("the time limit is near: the workers are being stopped");
  lead_ = true;
  if (auto stop = run_.start({"scancel", "--signal=TERM", run_.state().job}))
    helpers_.push_back(std::move(*stop));
}

void Deputy::ask_for_the_end() {
  // Short: the call blocks the heartbeat, and peers give up on this node after eight looks.
  constexpr std::chrono::seconds kPatience{3};
  const auto told =
      proc::tool_output(scontrol_job_command(run_.state().job),
                        environment_for_tools(proc::own_environment()), {.patience = kPatience});
  end_s_ = told ? parse_int(oneline_value(told->out, "EndTime")).value_or(0) : 0;
}

// Returns whether another launch of the script is still running under a live process. Each launch
// stops its own ranks, and the last one concludes the job.
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

// Returns whether the script's batch step is alive. If so, only the launch was killed, and the
// script decides what happens next.
bool Deputy::script_lives() {
  // Longer than a HeartbeatWatch needs to call a process gone.
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
  look();
  JobRun& job = job_ ? *job_ : run_;
  if (job_) {
    // The last launch concludes the job for all.
    if (script_lives() || has_other_launches()) return code;
    verdict.unfit = run_.unfit();
    code = job.conclude(judge_orphan(std::move(verdict), before_), true);
    look();
  }
  const bool is_over = job.state().stage == Stage::ended || !job.state().next.empty();
  if (!code || !is_over) return code;
  // End the job in Slurm: srun is gone, so the job would hold its nodes until the time limit.
  // --state=RUNNING spares a job that Slurm has stopped and perhaps queued again. Retry, because
  // the controller may be down.
  constexpr int kTries = 120;
  constexpr std::chrono::seconds kPause{5};
  for (int i = 0; i < kTries && job.call_tool({"scancel", "--state=RUNNING", job.state().job}) != 0;
       ++i)
    job.pause(kPause);
  return code;
}

}  // namespace lockstep::slurm
