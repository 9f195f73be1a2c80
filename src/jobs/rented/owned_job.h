// A job on rented machines whose rental another host owns (`run --on-demand --guard HOST`), from
// the machine of its user. The journal of rentals here has a small record of it. The host answers
// all questions, because only the host has the keys to the machines.
#pragma once

#include "cloud/rented_job.h"
#include "jobs/job.h"
#include "jobs/rented/owned_end.h"
#include "jobs/rented/rented_state.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {

// Returns the record of such a job, as of a job in the book. Its id is the id on the machines, or
// the name of its cluster while the id is not known here.
KnownJob known_owned(const cloud::RentedJob& course);
// Returns the jobs of other hosts among the courses, the newest first.
std::vector<cloud::RentedJob> owned_among(const std::vector<cloud::RentedJob>& courses);
// Finds a job of another host by the name of its cluster, or by its id on the machines.
std::optional<cloud::RentedJob> find_owned(std::string_view word,
                                           const std::vector<cloud::RentedJob>& courses);
// The same for commands that must not miss such a job: an unreadable journal is an error.
using Courses = Result<std::vector<cloud::RentedJob>>;
Result<std::vector<cloud::RentedJob>> owned_among(cloud::Journal& journal);
Result<std::optional<cloud::RentedJob>> find_owned(std::string_view word, const Courses& courses);
// Refuses the name of a cluster whose machines another host has rented: the keys and the addresses
// are there.
Status check_machines_here(const std::string& name, const Courses& courses);
// Returns the course of a record that known_owned() has made. nullopt: of another job.
std::optional<cloud::RentedJob> owned_course_of(const KnownJob& job,
                                                const std::vector<cloud::RentedJob>& courses);

class OwnedJob : public Job {
 public:
  OwnedJob(KnownJob record, cloud::RentedJob course, OwnedWorld world)
      : Job(std::move(record)), course_(std::move(course)), world_(std::move(world)) {}
  PlaceFacts facts() const override { return {.owner = course_.host}; }
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<std::vector<looks::Answer>> looks(const looks::Question& question) override;
  Result<std::vector<looks::NodeRows>> ranks() override;
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override;
  // Always invalid_input: no connection of this machine reaches the ranks.
  Result<std::vector<PageThere>> page(int node) override;
  Result<ProfileAnswers> profile(const ProfileRequest& request) override;
  // Follows the course there. Brings the outputs at the end, tells the host, and forgets the job
  // here. With `lines`, `rank` or `json`, or without `to_end`, the host prints what its own
  // `lockstep logs` prints.
  Result<Followed> follow(const FollowOptions& options) override;
  // Cancels the job, and returns once it is settled as in follow().
  Result<JobStatus> cancel() override;
  // Always invalid_input: the course begins the job again by itself.
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  // Returns the answer to `host-rental look RENTAL QUESTION...`.
  Result<std::string> look(const std::vector<std::string>& question) const;
  // Shows the course as `show` says. Returns the end of the settled job, or its state now.
  Result<Followed> follow_course(const OwnedShow& show);
  Result<Followed> print_there(const FollowOptions& options);
  // Returns the state of an unsettled job; the last known state if the host is silent.
  JobState state_now();

  cloud::RentedJob course_;
  OwnedWorld world_;
};

// Answers `host-rental look` on the host, for the job's client. job: nullptr if it has not begun.
// question: why | looks [QUESTION] | ranks | events AFTER.
Result<std::string> answer_look(Job* job, const std::vector<std::string>& question);

}  // namespace lockstep::jobs::rented
