// A job on hosts over SSH, or on this machine under a supervisor.
#pragma once

#include "hosts/command_run.h"
#include "jobs/job.h"
#include "jobs/job_rows.h"
#include "jobs/on_hosts/job_start.h"
#include "status/profile_trace.h"

#include <cstdint>
#include <functional>
#include <utility>

namespace lockstep::jobs::on_hosts {

// How a job's hosts are asked, and how parts are started there. A test gives stand-ins.
struct HostsWorld {
  hosts::RunCommand run = hosts::over_links();
  std::function<Result<StartedJob>(const JobRequest&)> start = [](const JobRequest& request) {
    return start_job(request);
  };
  std::int64_t most_trace = status::kMostTrace;  // bytes of a trace
};

class HostsJob : public Job {
 public:
  explicit HostsJob(KnownJob record, HostsWorld world = {})
      : Job(std::move(record)), world_(std::move(world)) {}
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<std::vector<looks::Answer>> looks(const looks::Question& question) override;
  // Both ask only the host that ran the row.
  std::vector<nlohmann::json> row_reports(std::size_t row, const std::string& host) override;
  Result<std::vector<looks::Answer>> row_looks(std::size_t row, const std::string& host) override;
  Result<std::vector<looks::NodeRows>> ranks() override;
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override;
  Result<std::vector<PageThere>> page(int node) override;
  Result<ProfileAnswers> profile(const ProfileRequest& request) override;
  Status bring_trace(const TraceThere& trace, const std::string& to,
                     const std::function<Status()>& meanwhile) override;
  Result<Followed> follow(const FollowOptions& options) override;
  Result<JobStatus> cancel() override;
  Result<Resumed> resume(const std::vector<std::string>& env) override;
  // Keeps the rows of a sweep in the job's record. Call before rented machines are terminated.
  Status keep_rows(const JobBook& book) const;

 private:
  Result<std::vector<JobRow>> rows(const JobSweep& sweep) const;
  Result<Resumed> resume_rows(const JobSweep& sweep, const std::vector<std::string>& env);

 protected:
  HostsWorld world_;
};

}  // namespace lockstep::jobs::on_hosts
