// Submits a job to the Slurm of this machine: its folder, its script, sbatch, and what is kept of
// it for `lockstep jobs`, logs, wait and cancel.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "slurm/job_folder.h"
#include "slurm/job_plan.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct SlurmRequest {
  slurm::JobWish wish;
  std::vector<std::string> run;      // options for `lockstep run`, then "--", script and arguments
  std::vector<std::string> command;  // what the user asked for, for people
  std::optional<int> min_nodes;      // fewer may go on when nodes are lost
  // The text of a batch script of the user's own; then `run` has options only.
  std::optional<std::string> script = {};
  std::vector<std::string> arguments = {};  // of that script
  std::vector<std::string> env;             // "NAME=value", more for the job
  std::vector<std::string> wheels = {};     // paths; they are on every node before its ranks start
  std::string wheel_place = "/tmp";         // folder of the nodes' own disks for them
  std::vector<std::string> node = {};       // options of slurm-node
  enum class Binary { automatic, shared, carried } binary = Binary::automatic;
  // Ours, of a client elsewhere, which asks again where it does not hear the answer: one job is
  // submitted under it, however often. Empty: a new one.
  std::string id = {};
  bool folder_is_here = true;  // false, for a preview: it is still to be brought
};

struct Submission {
  std::string script;                    // its text
  std::vector<slurm::Setting> settings;  // that sbatch is given
  std::vector<std::string> notes;
  std::string job = {};  // Slurm's id; empty: it was not submitted
  std::string id = {};   // ours
  std::string folder = {};
  std::string output = {};  // the file; empty: only the job itself knows
};

// What would be submitted; nothing is made.
Result<Submission> preview_slurm_job(const SlurmRequest& request);
// Errors are sbatch's own words.
Result<Submission> submit_slurm_job(const SlurmRequest& request);

// Where a Slurm job is, as KnownJob::plan has it; nullopt: the job is none of Slurm's.
struct SlurmPlace {
  std::string job;  // as which it runs now: a chain goes on under other numbers
  std::string folder;
  std::string output;
};
std::optional<SlurmPlace> slurm_place(const jobs::KnownJob& job);
// The same, but nullopt also for a job that was submitted on a login host elsewhere.
std::optional<SlurmPlace> slurm_place_here(const jobs::KnownJob& job);
std::string plan_text(const SlurmPlace& place);
// What a job that was submitted here says of itself; nullopt: nothing yet.
std::optional<slurm::BatchState> slurm_state(const jobs::KnownJob& job, const SlurmPlace& place);
// Whether it was found by the beginning of its id alone: a number may be meant as Slurm's.
bool begins_only(const jobs::KnownJob& job, const std::string& word);
// JobBook::find(), and a job of a chain by each number that Slurm has given it.
Result<jobs::KnownJob> find_job(const jobs::JobBook& book, const std::string& word);

}  // namespace lockstep::jobs::on_slurm
