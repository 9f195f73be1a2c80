#include "jobs/on_hosts/job_start.h"

#include "base/log.h"
#include "hosts/wait_notice.h"
#include "jobs/on_hosts/ask_hosts.h"
#include "jobs/on_hosts/start_course.h"
#include "proc/signal_watch.h"

#include <unistd.h>

#include <memory>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

// Carries out a StartCourse: owns a link to each host, and the signals.
class JobStart {
 public:
  JobStart(const JobRequest& request, hosts::OpenLink open_link)
      : request_(request),
        open_link_(std::move(open_link)),
        course_(request, {.send = [this](std::size_t node,
                                         const link::Frame& frame) { links_[node]->send(frame); },
                          .warn = [](const std::string& text) { log::warning("{}", text); }}),
        notice_(loop_, [this] { return waiting(); }) {}
  Result<StartedJob> run();
  bool is_half_begun() const { return course_.is_half_begun(); }

 private:
  void open(std::size_t node);
  void stop_if_over();
  hosts::WaitNotice::Waiting waiting() const;

  const JobRequest& request_;
  hosts::OpenLink open_link_;
  io::Loop loop_;
  StartCourse course_;
  // Closing the links tells hosts without a started part to drop the job.
  std::vector<std::unique_ptr<hosts::Link>> links_;
  std::unique_ptr<proc::SignalWatch> signals_;
  hosts::WaitNotice notice_;
};

Result<StartedJob> JobStart::run() {
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int number) {
                        course_.on_signal(number);
                        stop_if_over();
                      }));
  for (std::size_t i = 0; i < request_.hosts.size(); ++i)
    open(i);
  course_.begin();
  notice_.start();
  if (!course_.is_over()) loop_.run();
  return course_.result();
}

void JobStart::open(std::size_t node) {
  // Only one host may ask for a password: several prompts would mix.
  const bool alone = request_.hosts.size() == 1;
  links_.push_back(open_link_(loop_,
                              hosts::Link::Settings{.place = request_.hosts[node],
                                                    .may_ask = alone && isatty(STDERR_FILENO) == 1,
                                                    .commands = ssh::Commands::may_outlive_us},
                              hosts::Link::Events{[this, node](const link::Frame& frame) {
                                                    course_.take(node, frame);
                                                    stop_if_over();
                                                  },
                                                  [this](const std::string& why) {
                                                    course_.lost(why);
                                                    stop_if_over();
                                                  }}));
}

void JobStart::stop_if_over() {
  if (course_.is_over()) loop_.stop();
}

hosts::WaitNotice::Waiting JobStart::waiting() const {
  hosts::WaitNotice::Waiting away;
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (course_.waits_for(i))
      away.emplace_back(
          request_.hosts[i].name,
          std::string(links_[i]->ready() ? "the job is being prepared" : links_[i]->doing()) +
              hosts::kCtrlCEnds);
  return away;
}

}  // namespace

Result<StartedJob> start_job(const JobRequest& request, const hosts::OpenLink& open_link,
                             const hosts::RunCommand& run) {
  bool half_begun = false;
  Result<StartedJob> started;
  {
    JobStart start(request, open_link);
    started = start.run();
    half_begun = start.is_half_begun();
  }
  // The links are closed now, so hosts without a started part drop the job.
  if (!half_begun) return started;
  // Cancel the job everywhere: a job runs on all hosts or none. The user must cancel it on a silent
  // host.
  io::Loop loop;
  const auto endings = run(loop, about_job(request.hosts, "cancel", request.spec.id));
  for (std::size_t i = 0; endings && i < endings->size(); ++i)
    if (!(*endings)[i].error.empty())
      log::warning("{}; the job {} may still run there", (*endings)[i].error, request.spec.id);
  return started;
}

}  // namespace lockstep::jobs::on_hosts
