#include "cli/rented_view.h"

#include "base/date_text.h"
#include "base/mid_line.h"
#include "cli/guarded.h"
#include "cli/job_json.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "io/own_stream.h"
#include "jobs/rented/client_state.h"
#include "jobs/rented/course_process.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

using jobs::rented::ViewStep;
using std::chrono::milliseconds;

constexpr std::size_t kMostUnprinted = 4UL << 20;
// inotify reports output at once. The looks are for the journal, which lies in another folder.
constexpr milliseconds kLook{100};

}  // namespace

std::string start_text(const cloud::RentedJob& job, const jobs::KnownJob& known, bool json) {
  if (!json) return known.id;
  std::vector<std::string> nodes;
  for (const hosts::HostPlace& node : known.nodes)
    nodes.push_back(node.name);
  return codec::print_json(started_json(known.id, nodes, job.ahead));
}

RentedView::RentedView(rent::OnDemand& world, ViewRequest request, rent::CourseProcess course,
                       io::Fd claim)
    : world_(world),
      request_(std::move(request)),
      course_(std::move(course)),
      claim_(std::move(claim)),
      log_(request_.rental.cluster),
      next_look_(loop_),
      next_start_(loop_),
      core_(request_.detach) {
  log_.drop_progress();
}

Result<std::optional<cloud::RentedJob>> RentedView::record() const {
  return jobs::rented::job_of_rental(world_.journal(), request_.rental.id);
}

void RentedView::say(const std::string& text) {
  bar_.clear();
  end_line();
  err_->put("", fmt::format("{}: {}\n", request_.program, text), [](std::size_t) {});
}

// Says that the job goes on without this terminal, and who ends its machines.
std::string RentedView::going_on_words() const {
  const auto known = world_.journal().of_cluster(request_.rental.cluster);
  const cloud::Rental& rental = known && known->id == request_.rental.id ? *known : request_.rental;
  return fmt::format(
      "'{}' goes on: {} USD an hour; it ends with its job, which is followed from "
      "here, or {}; {}",
      rental.cluster, cloud::dollars_text(cloud::rate_now(rental)),
      date_text(rent::certain_end_ms(world_, rental)), rent::follow_log(rental.cluster));
}

void RentedView::carry_out(ViewStep step) {
  switch (step) {
    case ViewStep::go_on:
      return;
    case ViewStep::cancel:
      return cancel();
    case ViewStep::start_again:
      say("the process that followed the job has ended before the job; another goes on, and shows "
          "the job's output from its beginning");
      return next_start_.start(core_.pause(), [this] { start_course(); });
    case ViewStep::give_up:
      say(
          fmt::format("processes that follow the job end again and again, and none does now; "
                      "lockstep down {} ends its machines; {}",
                      request_.rental.cluster, rent::follow_log(request_.rental.cluster)));
      return stop();
    case ViewStep::leave:
      return leave();
    case ViewStep::finish:
      return finish();
    case ViewStep::stop:
      over_ = true;
      return loop_.stop();
  }
}

void RentedView::start_course() {
  auto started = rent::start_course(request_.rental.id, claim_);
  if (!started) {
    say(started.error().message);
    return stop();
  }
  course_ = std::move(*started);
  watch_course();
}

void RentedView::watch_course() {
  // The pipe has room for a byte. An error means that the process is gone already.
  (void)!write(course_.go.get(), "g", 1);
  started_ = io::Clock::now();
  ended_.emplace(loop_, course_.child.pidfd());
  ended_->start(io::kReadable, [this](int) { on_course_end(); });
}

void RentedView::on_course_end() {
  const auto exit = course_.child.reap();
  if (!exit || over_) return;
  ended_.reset();
  log_.drop_progress();
  // A journal that cannot be read does not say that the job has ended.
  const auto job = record().value_or(cloud::RentedJob{});
  carry_out(
      core_.on_course_end(exit->shell_code(), job,
                          std::chrono::duration_cast<milliseconds>(io::Clock::now() - started_)));
}

void RentedView::cancel() const {
  (void)syscall(SYS_pidfd_send_signal, course_.child.pidfd(), SIGINT, nullptr, 0);
}

// Returns whether the process of the course handles signals, which it says by its pid in the
// journal.
bool RentedView::is_ready(const std::optional<cloud::RentedJob>& job) const {
  return course_.child.alive() && job && job->follower == course_.child.pid();
}

void RentedView::look() {
  if (over_) return;
  std::array<char, 8192> events;
  // Drain the events: only the wake-up matters.
  while (changes_ && read(changes_.get(), events.data(), events.size()) > 0) {
  }
  show_output();
  show_progress();
  next_look_.start(kLook, [this] { look(); });
  if (!core_.is_waiting()) return;
  const auto job = record().value_or(std::nullopt);
  carry_out(core_.on_look(is_ready(job), request_.detach && jobs::rented::started_job(job)));
}

void RentedView::show_output() {
  const auto put = [this](link::Stream stream, std::string_view bytes) {
    // Whoever detaches wants the job's id on stdout, and no output.
    if (request_.detach && stream == link::Stream::out) return;
    bar_.clear();
    unprinted_ += bytes.size();
    hosts::HostOutput& output = stream == link::Stream::out ? *out_ : *err_;
    output.put("", bytes, [this](std::size_t printed) { unprinted_ -= printed; });
  };
  while (unprinted_ < kMostUnprinted && log_.read(put)) {
  }
  if (log_.take_gap())
    say(
        fmt::format("this terminal is too slow, and some output is missing here; {} has the "
                    "beginning and the end",
                    rent::follow_log(request_.rental.cluster)));
}

void RentedView::show_progress() {
  if (const auto progress = log_.progress())
    bar_.draw(progress->bytes, progress->of);
  else
    bar_.clear();
}

// Keeps the text about a detached job for run(), which prints it.
void RentedView::note_start() {
  const auto job = record().value_or(std::nullopt);
  const auto known = jobs::rented::started_job(job);
  if (request_.detach && known) start_text_ = start_text(*job, *known, request_.json);
}

// Ends the view of a job that goes on.
void RentedView::leave() {
  // A job whose process has just died needs another one.
  (void)course_.child.reap();
  if (!course_.child.alive()) {
    next_start_.cancel();
    start_course();
  }
  note_start();
  const auto job = record().value_or(std::nullopt);
  if (job && job->stage == cloud::RentedJob::Stage::ending)
    say(fmt::format("the machines of '{}' are being terminated in the background; {}", job->cluster,
                    rent::follow_log(job->cluster)));
  else
    say(going_on_words());
  stop();
}

// Prints the rest of the log.
void RentedView::finish() {
  show_output();
  if (unprinted_ >= kMostUnprinted) return next_start_.start(kLook, [this] { finish(); });
  note_start();
  stop();
}

void RentedView::stop() {
  bar_.clear();
  over_ = true;
  changed_.reset();
  ended_.reset();
  out_->when_idle([this] { err_->when_idle([this] { loop_.stop(); }); });
}

Result<int> RentedView::run() {
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int number) {
                        // The rest of the output may wait for a reader that never comes.
                        if (over_ && number != SIGCHLD && number != SIGWINCH) return loop_.stop();
                        if (over_) return;
                        carry_out(core_.on_signal(number, record().value_or(cloud::RentedJob{})));
                      }));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream out,
                      io::OwnStream::open(STDOUT_FILENO, io::OwnStream::Way::write));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream err,
                      io::OwnStream::open(STDERR_FILENO, io::OwnStream::Way::write));
  out_.emplace(loop_, std::move(out));
  err_.emplace(loop_, std::move(err));
  changes_ = io::Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string folder = io::state_folder() + "/rentals";
  if (changes_ &&
      inotify_add_watch(changes_.get(), folder.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) >= 0) {
    changed_.emplace(loop_, changes_.get());
    changed_->start(io::kReadable, [this](int) { look(); });
  }
  watch_course();
  look();
  loop_.run();
  if (!start_text_.empty()) std::puts(start_text_.c_str());
  // The user has seen the end, so the next command does not tell it.
  if (const auto job = record().value_or(std::nullopt);
      job && job->stage == cloud::RentedJob::Stage::ended)
    (void)world_.journal().drop_job(job->rental);
  return core_.code();
}

}  // namespace lockstep::cli
