// The jobs that this user's clients have started on hosts, in state.db: where they run, and how
// they stood when they were last asked.
#pragma once

#include "base/error.h"
#include "db/database.h"
#include "hosts/host_link.h"
#include "job/job_spec.h"

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
  std::string plan = {};  // JSON, for whoever resumes a part of it; has the job's own token
  std::int64_t created_ms = 0;
  job::Stage stage = job::Stage::running;
  int code = 0;
  std::int64_t ended_ms = 0;
  std::int64_t away_ms = 0;  // since when no host of a job that has not ended is reached; 0: one is

  bool is_over() const { return stage == job::Stage::ended || stage == job::Stage::lost; }
};

// How the plan of a job of Slurm's begins: by its number it is found.
std::string slurm_plan_head(const std::string& number);

class JobBook {
 public:
  static Result<JobBook> open(const std::string& folder);

  Status add(const KnownJob& job) const;
  // By id, by the newest of that name, by Slurm's number, or by the beginning of an id. not_found
  // otherwise; invalid_input where several begin so.
  Result<KnownJob> find(const std::string& word) const;
  Result<std::vector<KnownJob>> list(std::size_t most) const;  // the newest first
  // Those of that name that had not ended when they were last asked; the newest first.
  Result<std::vector<KnownJob>> going_on(const std::string& name) const;
  Status remove(const std::string& id) const;
  Status note_plan(const std::string& id, const std::string& plan) const;
  Status note(const std::string& id, job::Stage stage, int code, std::int64_t ended_ms) const;
  // Its hosts are not reached; returns since when that is so.
  Result<std::int64_t> note_away(const std::string& id, std::int64_t now_ms) const;

 private:
  explicit JobBook(db::Database database) : database_(std::move(database)) {}
  Result<std::vector<KnownJob>> select(std::string_view where, const std::string& word,
                                       std::size_t most) const;
  db::Database database_;
};

}  // namespace lockstep::jobs
