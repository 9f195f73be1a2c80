// A job of this machine's Slurm. Asks squeue and sacct, and reads the job's own folder.
#pragma once

#include "jobs/job.h"
#include "jobs/on_slurm/slurm_agents.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Returns the refusal to resume a job of Slurm, also of another host's. number: Slurm's; may be "".
Failure only_slurm_resumes(const std::string& number);

class SlurmJob : public Job {
 public:
  SlurmJob(KnownJob record, SlurmPlace place, SlurmWorld world = {})
      : Job(std::move(record)), place_(std::move(place)), world_(std::move(world)) {}
  PlaceFacts facts() const override;
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<std::vector<looks::Answer>> looks(const looks::Question& question) override;
  std::vector<nlohmann::json> row_reports(std::size_t row, const std::string& host) override;
  Result<std::vector<looks::Answer>> row_looks(std::size_t row, const std::string& host) override;
  Result<std::vector<looks::NodeRows>> ranks() override;
  // Also answers about an ended job, by the reports of its agents.
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override;
  Result<std::vector<PageThere>> page(int node) override;
  Result<ProfileAnswers> profile(const ProfileRequest& request) override;
  Status bring_trace(const TraceThere& trace, const std::string& to,
                     const std::function<Status()>& meanwhile) override;
  // Returns the path of a finished trace in the job's folder, which all nodes see.
  // All calls together wait for a minute at most.
  Result<std::string> find_trace(const TraceThere& trace);
  std::chrono::seconds pause() const override { return kPauseOfAgents; }
  // The answers of looks(), ranks(), events() and profile() as JSON, for a client elsewhere. words:
  // as for ask_slurm_agents().
  Result<std::vector<std::string>> ask(const std::vector<std::string>& words);
  Result<Followed> follow(const FollowOptions& options) override;
  Result<JobStatus> cancel() override;
  // Runs the rows of a sweep again that are not done. invalid_input for other jobs: Slurm itself
  // queues jobs again.
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  // Refuses a question about ranks for a sweep: each row has its own ranks.
  Status check_whole() const;

  SlurmPlace place_;
  SlurmWorld world_;
  int looks_for_traces_ = 60;  // one a second
};

}  // namespace lockstep::jobs::on_slurm
