// The journal of the jobs started by this user's clients, in state.db: where each job runs, and its
// last known status.
#pragma once

#include "base/error.h"
#include "db/database.h"
#include "hosts/host_link.h"
#include "jobs/job_status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs {

struct KnownJob {
  std::string id;
  std::string name;
  std::string place;    // as the user wrote it: "gpus"
  std::string command;  // "train.py --lr 0.1", for people
  std::vector<hosts::HostPlace> nodes = {};
  std::string plan = {};        // JSON for resuming the job; may hold the job's own token
  std::int64_t created_ms = 0;  // Unix time
  JobStatus status = {.state = JobState::running};  // when last asked, without its nodes
  // Unix time since when no host of an unended job answers; 0: a host does.
  std::int64_t away_ms = 0;

  bool is_over() const { return status.is_over(); }
};

std::vector<std::string> node_names(const KnownJob& job);

// Returns the first bytes of a Slurm job's plan. find() looks up Slurm's number by them.
std::string slurm_plan_head(const std::string& number);

class JobBook {
 public:
  // Opens or creates state.db in the folder, readable by this user alone.
  static Result<JobBook> open(const std::string& folder);
  // The same for commands that only look at jobs. Where the folder is missing and cannot be made,
  // the book is empty: runs on this machine are found without it.
  static Result<JobBook> open_to_look(const std::string& folder);

  // Replaces a job of this id: a later attempt of a job on rented machines runs on other machines.
  Status add(const KnownJob& job) const;
  // Finds a job by id, as the newest of that name, by Slurm's number, or by the beginning of an id.
  // not_found: there is none. invalid_input: several ids begin with the word.
  Result<KnownJob> find(const std::string& word) const;
  Result<std::vector<KnownJob>> list(std::size_t most) const;  // the newest first
  // Returns the jobs of that name without a known end, the newest first.
  Result<std::vector<KnownJob>> going_on(const std::string& name) const;
  Status remove(const std::string& id) const;
  Status note_plan(const std::string& id, const std::string& plan) const;
  Status note(const std::string& id, const JobStatus& status) const;
  Status note(const std::string& id, JobState state) const;
  // Notes that no host of the job answers. Returns since when, as Unix time.
  Result<std::int64_t> note_away(const std::string& id, std::int64_t now_ms) const;

 private:
  static Result<JobBook> over(db::Database database);
  explicit JobBook(db::Database database) : database_(std::move(database)) {}
  Result<std::vector<KnownJob>> select(std::string_view where, const std::string& word,
                                       std::size_t most) const;
  Status note_facts(const std::string& id, const JobStatus& status) const;
  db::Database database_;
};

}  // namespace lockstep::jobs
