#include "jobs/on_slurm/slurm_follow.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/text.h"
#include "hosts/folded_lines.h"
#include "hosts/log_lines.h"
#include "io/fd.h"
#include "io/last_lines.h"
#include "jobs/job_rows.h"
#include "jobs/on_slurm/slurm_rows.h"
#include "slurm/verdict.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};  // between two looks at the output file
// Pauses between questions to Slurm, whose controller many users share. A running job records its
// end in its own folder, so asking seldom delays nothing.
constexpr Backoff::Rules kAsk{.first = milliseconds(1000), .longest = milliseconds(15'000)};
constexpr std::size_t kChunk = 256UL << 10;

// Prints a growing file. Splits it into lines only if lines are filtered or wrapped in JSON.
class OutputFile {
 public:
  OutputFile(const SlurmFollow& request, const SlurmWorld& world)
      : request_(request),
        world_(world),
        path_(request.place.output),
        form_{.rank = request.options.rank, .json = request.options.json, .joins_pieces = true},
        at_(request.from) {
    if (form_.json) form_.before = hosts::log_line_head(request.place.job, "stdout");
    if (request.options.fold && !form_.by_line()) folded_.emplace(world.print);
  }

  const std::string& path() const { return path_; }
  void set_path(const std::string& path) { path_ = path; }

  // Prints the bytes written since the last call.
  Status print_new() {
    if (path_.empty()) return {};
    // Another user's output path may be a FIFO. O_NONBLOCK keeps open() from blocking.
    const io::Fd file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return {};  // the job has not created the file yet
    struct stat info {};
    if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    if (info.st_size < at_) at_ = 0;  // the file was truncated, as by a requeued job
    if (request_.options.lines && !std::exchange(began_, true))
      at_ = io::begin_of_last_lines(file.get(), info.st_size, *request_.options.lines);
    std::vector<char> bytes(kChunk);
    while (true) {
      const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), at_);
      if (got < 0) return fail_sys("read " + path_, errno);
      if (got == 0) return folded_ ? folded_->tick(world_.now()) : Status();
      at_ += got;
      LOCKSTEP_TRY(put({bytes.data(), static_cast<std::size_t>(got)}));
    }
  }

  Status finish() {
    if (folded_) return folded_->finish();
    std::string text;
    lines_.take_rest([&](const hosts::OutputLine& line) { text = form_.text(line); });
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    return world_.print(text);
  }

 private:
  Status put(std::string_view bytes) {
    if (folded_) return folded_->put(bytes, world_.now());
    if (!form_.by_line()) return world_.print(bytes);
    std::string text;
    lines_.put(bytes, [&](const hosts::OutputLine& line) { text += form_.text(line); });
    return world_.print(text);
  }

  const SlurmFollow& request_;
  const SlurmWorld& world_;
  std::string path_;
  hosts::LineForm form_;
  hosts::OutputLines lines_;
  std::optional<hosts::FoldedLines> folded_;
  std::int64_t at_;
  bool began_ = false;
};

int shell_code(const slurm::JobReport& status) {
  if (status.signal.value_or(0) > 0) return 128 + *status.signal;
  const int code = status.exit_code.value_or(0);
  return code == 0 && !status.state.completed() ? 1 : code & 0xff;
}

bool is_ended(const std::optional<slurm::BatchState>& own) {
  return own && own->stage == slurm::Stage::ended;
}

// Returns whether the batch step's record is final. After other causes, Slurm may queue the job
// again, as after a stop or a lost node.
bool is_over(const std::optional<slurm::BatchState>& own) {
  using slurm::Cause;
  if (!is_ended(own)) return false;
  for (const Cause cause : {Cause::success, Cause::worker, Cause::hang, Cause::watchdog})
    if (own->cause == slurm::cause_name(cause)) return true;
  return false;
}

// Returns whether a person stopped the job. Slurm has other words for a preemption and a time
// limit.
bool was_canceled(const std::optional<slurm::BatchState>& own, const slurm::JobReport* status) {
  if (status != nullptr && status->state.ended()) return status->state.cancelled();
  return own && own->cause == slurm::cause_name(slurm::Cause::stopped);
}

// Returns whether Slurm still prepares or boots the nodes of the job.
bool is_booting(const slurm::SlurmState& state) {
  return state.name == "CONFIGURING" || state.name == "POWER_UP_NODE";
}

JobStatus ended(int code, std::int64_t ended_ms, std::string why, bool canceled) {
  JobStatus status{.state = code == 0 ? JobState::succeeded : JobState::failed,
                   .code = code,
                   .canceled = canceled,
                   .by_person = canceled,
                   .ended_ms = ended_ms,
                   .why = std::move(why)};
  if (canceled) status.state = JobState::canceled;
  return status;
}

std::optional<slurm::BatchState> own_words(const SlurmPlace& place) {
  if (place.folder.empty()) return std::nullopt;
  auto state = slurm::JobFolder(place.folder).state();
  return state ? std::optional(std::move(*state)) : std::nullopt;
}

// Returns the status of a job of which Slurm was asked. nullopt: neither Slurm nor the batch step
// knows the end.
std::optional<JobStatus> known_status(const std::optional<slurm::BatchState>& own,
                                      const slurm::JobReport* status, std::int64_t now_ms) {
  if (status == nullptr && !is_ended(own)) return std::nullopt;
  return batch_status(own, status, now_ms);
}

bool is_another(const slurm::BatchState& state, const std::string& number) {
  const std::string_view now = slurm::job_now(state);
  return slurm::is_job_id(now) && now != number;
}

class Follower {
 public:
  Follower(const SlurmFollow& request, const SlurmWorld& world)
      : request_(request), world_(world), output_(request, world) {}

  Result<Followed> run() {
    while (true) {
      if (request_.options.print) LOCKSTEP_TRY(output_.print_new());
      Followed followed{.status = look()};
      if (followed.status.is_over() || !request_.options.to_end) {
        if (request_.options.print) LOCKSTEP_TRY(output_.print_new());
        LOCKSTEP_TRY(output_.finish());
        return followed;
      }
      if (const int signal = world_.wait_for_signal(kLook); signal != 0) {
        followed.left = true;
        followed.signal = signal;
        return followed;
      }
    }
  }

 private:
  JobStatus look() {
    auto own = own_words(request_.place);
    // The first node's name may be a part of it.
    if (output_.path().empty() && own) output_.set_path(own->output);
    if (is_over(own)) return batch_status(own, nullptr, world_.unix_ms());
    // Ask Slurm once as soon as the batch step has recorded its end: Slurm may queue the job again.
    const bool seems_over = is_ended(own) && !std::exchange(seen_end_, true);
    if (seems_over || world_.now() >= next_ask_) {
      ask();
      own = own_words(request_.place);
    }
    if (goes_on(own)) return {.state = JobState::running};
    if (!status_ && !nobody_knows_) return {.state = JobState::running};
    return known_status(own, status_ ? &*status_ : nullptr, world_.unix_ms())
        .value_or(JobStatus{.state = JobState::lost});
  }

  // Returns whether the chain continued as another Slurm job. Earlier answers of Slurm were about
  // the earlier job.
  bool goes_on(const std::optional<slurm::BatchState>& own) {
    if (!own || !is_another(*own, number_)) return false;
    number_ = slurm::job_now(*own);
    status_.reset();
    nobody_knows_ = seen_end_ = false;
    next_ask_ = world_.now();
    pauses_.reset();
    return true;
  }

  void ask() {
    // Only the long form of the question names the output file.
    const bool whole = output_.path().empty() && request_.options.print;
    auto jobs = slurm::ask_jobs({asked_of(request_.job, number_)},
                                whole ? slurm::Detail::all : slurm::Detail::usual, world_.run);
    next_ask_ = world_.now() + pauses_.next();
    if (!jobs) {
      if (!std::exchange(away_, true)) log::warning("{}; the job goes on", jobs.error().message);
      return;
    }
    if (std::exchange(away_, false)) log::warning("Slurm answers again");
    nobody_knows_ = jobs->empty();
    if (jobs->empty()) {
      // Slurm's controller forgets ended jobs after some minutes. The last answer is out of date.
      status_.reset();
      return;
    }
    tell_change(jobs->front());
    status_ = std::move(jobs->front());
    if (output_.path().empty()) output_.set_path(status_->output);
  }

  void tell_change(const slurm::JobReport& now) {
    if (status_ && status_->state == now.state && status_->reason == now.reason) return;
    pauses_.reset();
    if (!request_.options.to_end) return;
    if (now.state.phase == slurm::JobPhase::waiting) {
      if (now.reason.empty()) return;  // the scheduler has not looked at the job yet
      log::warning("job {} waits: {}; lockstep why {} explains the reason", number_, now.reason,
                   number_);
    } else if (now.state.phase == slurm::JobPhase::running && !now.nodes.empty()) {
      log::info("job {} runs on {}", number_, now.nodes);
    }
  }

  const SlurmFollow& request_;
  const SlurmWorld& world_;
  OutputFile output_;
  std::string number_ = request_.place.job;
  std::optional<slurm::JobReport> status_;
  bool nobody_knows_ = false;
  bool seen_end_ = false;
  bool away_ = false;
  SlurmWorld::Clock::time_point next_ask_ = world_.now();
  Backoff pauses_{kAsk};
};

}  // namespace

JobStatus batch_status(const std::optional<slurm::BatchState>& own, const slurm::JobReport* status,
                       std::int64_t now_ms) {
  const bool agreed = status == nullptr || status->state.ended();
  if (is_over(own) || (is_ended(own) && agreed))
    return ended(own->code, own->ended_ms, own->cause + ": " + own->words,
                 !is_over(own) && was_canceled(own, status));
  if (status == nullptr) return {.state = JobState::running};
  if (status->state.phase == slurm::JobPhase::waiting) return {.state = JobState::queued};
  if (is_booting(status->state)) return {.state = JobState::starting};
  if (!status->state.ended()) return {.state = JobState::running};
  return ended(shell_code(*status), status->end ? *status->end * 1000 : now_ms,
               to_lower(status->state.name), was_canceled(own, status));
}

Result<Followed> follow_slurm_job(const SlurmFollow& request, const SlurmWorld& world) {
  return Follower(request, world).run();
}

slurm::JobAsked asked_of(const jobs::KnownJob& job, const std::string& number) {
  // Slurm's clock may differ from this machine's.
  constexpr std::int64_t kSkew = 60;
  return {.id = number, .name = {}, .user = {}, .since = job.created_ms / 1000 - kSkew};
}

std::vector<slurm::JobAsked> asked_arrays(const jobs::KnownJob& job, const SlurmPlace& place) {
  std::vector<slurm::JobAsked> asked = {asked_of(job, place.job)};
  for (const std::string& number : place.more)
    if (!number.empty()) asked.push_back(asked_of(job, number));
  return asked;
}

Result<std::vector<std::optional<JobStatus>>> ask_slurm_jobs(
    const std::vector<jobs::KnownJob>& jobs, const SlurmWorld& world) {
  std::vector<slurm::JobAsked> ids;  // one for each job
  std::vector<slurm::JobAsked> asked;
  std::vector<SlurmPlace> places;
  for (const jobs::KnownJob& job : jobs) {
    places.push_back(slurm_place(job).value_or(SlurmPlace()));
    const auto arrays = asked_arrays(job, places.back());
    ids.push_back(arrays.front());
    asked.insert(asked.end(), arrays.begin(), arrays.end());
  }
  LOCKSTEP_TRY_ASSIGN(const auto told, slurm::ask_jobs(asked, slurm::Detail::usual, world.run));
  std::vector<std::optional<JobStatus>> statuses;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (const auto sweep = sweep_of(jobs[i]); sweep && *sweep) {
      statuses.emplace_back(status_of_rows(slurm_rows(**sweep, places[i], told, world.unix_ms())));
      continue;
    }
    const auto status = std::find_if(told.begin(), told.end(),
                                     [&](const auto& each) { return slurm::is_of(each, ids[i]); });
    const auto own = own_words(places[i]);
    if (own && is_another(*own, places[i].job))
      statuses.emplace_back(JobStatus{.state = JobState::queued});
    else
      statuses.push_back(
          known_status(own, status == told.end() ? nullptr : &*status, world.unix_ms()));
  }
  return statuses;
}

jobs::KnownJob unrecorded_job(const std::string& number) {
  return {.id = number,
          .name = {},
          .place = "slurm",
          .command = {},
          .plan = plan_text({.job = number, .folder = {}, .output = {}})};
}

Result<jobs::KnownJob> find_slurm_job(const std::string& number, const SlurmWorld& world) {
  LOCKSTEP_TRY_ASSIGN(const auto told,
                      slurm::ask_jobs({{.id = number}}, slurm::Detail::all, world.run));
  if (told.empty())
    return fail(Errc::not_found, fmt::format("Slurm knows no job {}", printable(number)),
                "lockstep jobs lists all known jobs");
  const slurm::JobReport& status = told.front();
  jobs::KnownJob job = unrecorded_job(number);
  job.name = status.name;
  job.plan = plan_text({.job = number, .folder = {}, .output = status.output});
  job.created_ms = status.submitted.value_or(0) * 1000;
  return job;
}

}  // namespace lockstep::jobs::on_slurm
