#include "cli/rented_course.h"

#include "cli/ground.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/remote_run.h"
#include "cli/run_options.h"
#include "cli/sweep_options.h"
#include "jobs/rented/course_driver.h"
#include "jobs/rented/on_demand_machines.h"
#include "jobs/rented/rented_state.h"
#include "project/outputs.h"

#include <chrono>
#include <utility>

namespace lockstep::cli {
namespace {

using jobs::AttemptEnd;
using jobs::rented::OnDemandMachines;

void tell(const std::string& text) {
  tell_line(kRentedRun, text);
}

void tell_event(const cloud::RentEvent& event) {
  tell(event_text(event));
}

class RentedAttempts : public jobs::rented::CourseJob {
 public:
  RentedAttempts(const Call& call, RemoteOptions remote, const OnDemandOptions& options,
                 const OnDemandMachines& machines)
      : call_(call), remote_(std::move(remote)), options_(options) {
    remote_.on = machines.rental().cluster;
    remote_.place.nodes.reset();
    remote_.is_course = true;
    remote_.hosts_gone = [&machines] { return machines.some_gone(); };
  }

  Result<std::optional<AttemptEnd>> follow(const std::string& id) override {
    return follow_started_job(call_, remote_, id);
  }

  AttemptEnd begin(int number, const Events& events) override {
    Parsed parsed = call_.parsed;
    remote_.on_job = events.recorded;
    remote_.on_started = events.started;
    if (number > 1) {
      if (options_.resume_arg) parsed.script_args.push_back(*options_.resume_arg);
      remote_.attempt = number;
    }
    return run_job_on_hosts({call_.program, call_.words, std::move(parsed)}, remote_);
  }

  Status bring_outputs(const std::vector<hosts::HostPlace>& from) override {
    LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote_, false));
    return cli::bring_outputs(call_.parsed, remote_, ground, from, tell);
  }

  Status send_outputs(const std::vector<hosts::HostPlace>& to) override {
    LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote_, false));
    return project::send_outputs(to, *ground.project, remote_.back);
  }

 private:
  const Call& call_;
  RemoteOptions remote_;
  const OnDemandOptions& options_;
};

}  // namespace

Result<int> run_rented_course(const Call& call, RemoteOptions remote,
                              const OnDemandOptions& options, rent::OnDemand& world,
                              cloud::Rental rental, cloud::RentedJob job,
                              std::optional<Error> cannot_begin) {
  LOCKSTEP_TRY_ASSIGN(const auto wait_s, wait_seconds(options));
  remote.run_id = job.run_id;
  remote.job_id = jobs::rented::job_id_of(job);
  const std::vector<std::string> back = remote.back;
  SweepOptions sweep;
  fill(run_table(), call.parsed, sweep);
  const auto rows = sweep_rows(sweep);
  OnDemandMachines machines(
      world, std::move(rental),
      {.event = tell_event, .step = tell, .give_back = [&world](cloud::Rental& given) {
         return give_machines_back(world, kRentedRun, given);
       }});
  RentedAttempts attempts(call, std::move(remote), options, machines);
  jobs::rented::CourseDriver driver(
      world.journal(), std::move(job), machines, attempts,
      {.back = back,
       .rows = rows && *rows ? (*rows)->chosen.size() : 0,
       .wait = rules_of(wait_s).wait,
       .cannot_begin = std::move(cannot_begin),
       .tell = tell,
       .tell_error = [](const Error& error) { print_error(kRentedRun, error); }});
  return driver.run();
}

}  // namespace lockstep::cli
