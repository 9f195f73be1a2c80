// A job on rented machines, whose course may begin it again on other machines under the same id.
// What the machines know of the present attempt comes from another Job.
#pragma once

#include "cloud/rental.h"
#include "jobs/job.h"
#include "jobs/rented/rented_state.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {

// The journals, and the course's process. A test gives stand-ins.
struct RentedWorld {
  // Makes the Job of the present attempt.
  std::function<std::unique_ptr<Job>(KnownJob record)> attempt;
  std::function<std::vector<cloud::RentedJob>()> courses = courses_here;
  std::function<std::optional<cloud::Rental>(const cloud::RentedJob& course)> rental = rental_here;
  std::function<Result<KnownJob>(const std::string& id)> find = find_here;
  // Returns whether a process follows the job.
  std::function<bool(const std::string& rental)> is_followed = is_followed_here;
  // Cancels the job through its course. false: no process follows the job now.
  std::function<bool(const std::string& rental)> interrupt = interrupt_here;
  // canceled: a signal came, whose number is Error::sys.
  std::function<Status(std::chrono::milliseconds)> pause = pause_here;

  static std::optional<cloud::Rental> rental_here(const cloud::RentedJob& course);
  static Result<KnownJob> find_here(const std::string& id);
  static bool is_followed_here(const std::string& rental);
  static bool interrupt_here(const std::string& rental);
  static Status pause_here(std::chrono::milliseconds time);
};

class RentedJob : public Job {
 public:
  RentedJob(KnownJob record, RentedWorld world)
      : Job(std::move(record)), world_(std::move(world)) {}
  Result<JobStatus> status() override;
  bool may_begin_again() const override;
  Result<Explanation> why() override;
  Result<std::vector<looks::Answer>> looks(const looks::Question& question) override;
  std::vector<nlohmann::json> row_reports(std::size_t row, const std::string& host) override;
  Result<std::vector<looks::Answer>> row_looks(std::size_t row, const std::string& host) override;
  Result<std::vector<looks::NodeRows>> ranks() override;
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override;
  Result<std::vector<PageThere>> page(int node) override;
  Result<ProfileAnswers> profile(const ProfileRequest& request) override;
  Status bring_trace(const TraceThere& trace, const std::string& to,
                     const std::function<Status()>& meanwhile) override;
  // Follows all attempts, and returns once the course has ended: the outputs are here then.
  Result<Followed> follow(const FollowOptions& options) override;
  Result<JobStatus> cancel() override;
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  std::optional<cloud::RentedJob> course() const;
  std::unique_ptr<Job> attempt() const { return world_.attempt(record_); }
  std::optional<JobStatus> status_in_course();
  Result<bool> next_attempt(const cloud::RentedJob& course, std::optional<int>& losses);
  JobStatus end(const Followed& last, const std::optional<cloud::RentedJob>& course) const;

  RentedWorld world_;
};

}  // namespace lockstep::jobs::rented
