// Submits a job to this machine's Slurm: makes the job's folder and script, calls sbatch, and
// records the job for `lockstep jobs`, logs, wait and cancel.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/row_arrays.h"
#include "jobs/on_slurm/slurm_world.h"
#include "rows/table.h"
#include "slurm/job_folder.h"
#include "slurm/job_plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// The rows of a sweep, of which each is a task of an array job. Many rows need several array jobs.
struct SlurmSweep {
  rows::Table table;
  std::vector<std::size_t> rows;             // the rows to run, in rising order
  std::optional<std::int64_t> at_once = {};  // rows that run at once; nullopt: as Slurm has room
  // The value of --array in a user's own script, which then says which rows there are; else empty.
  std::string array = {};
  std::size_t array_rows = kUsualArrayRows;  // most rows of an array job
};

struct SlurmRequest {
  slurm::JobWish wish;
  std::vector<std::string> run;      // options for `lockstep run`, then "--", script and arguments
  std::vector<std::string> command;  // the user's command, for people
  std::optional<int> min_nodes;      // the job continues with this many if nodes are lost
  // Text of the user's own batch script. `run` then has options only.
  std::optional<std::string> script = {};
  std::vector<std::string> arguments = {};  // arguments of that script
  std::vector<std::string> env;             // "NAME=value", additional variables of the job
  std::vector<std::string> wheels = {};     // paths; copied to every node before its ranks start
  std::string wheel_place = "/tmp";         // folder on the nodes' own disks for the wheels
  std::vector<std::string> node = {};       // options of slurm-node
  enum class Binary { automatic, shared, carried } binary = Binary::automatic;
  // Our id of the job, from a client on another host. Such a client repeats the request until it
  // hears the answer. Only one job is submitted under an id. Empty: make a new id.
  std::string id = {};
  std::optional<SlurmSweep> sweep = {};
  bool folder_is_here = true;  // false for a preview: the folder does not exist here yet
};

struct Submission {
  std::string script;                    // text of the batch script
  std::vector<slurm::Setting> settings;  // settings passed to sbatch
  std::vector<std::string> notes;
  std::string job = {};  // Slurm's id; empty: the job was not submitted
  std::string id = {};   // our id
  std::string folder = {};
  std::string output = {};  // the output file; empty: only the job itself knows
};

// Returns the script and settings of the job. Creates nothing.
Result<Submission> preview_slurm_job(const SlurmRequest& request);
// Submits the job. Errors contain sbatch's own message.
Result<Submission> submit_slurm_job(const SlurmRequest& request, const SlurmWorld& world = {});

// Calls sbatch with the job's script and returns Slurm's id. canceled: it is not known whether
// Slurm has the job.
struct SbatchCall {
  std::vector<std::string> settings;        // words in front of the script
  std::vector<std::string> arguments = {};  // words behind the script
  std::vector<std::string> env = {};
  std::string working;  // folder in which sbatch is called
  // The row of task 0, if a sweep has several arrays. The script gets the number as its argument,
  // and Slurm's queue shows the number.
  std::optional<std::size_t> first_row = {};
};
Result<std::string> call_sbatch(const SbatchCall& call, const slurm::JobFolder& folder,
                                const SlurmWorld& world);

// Where a Slurm job is, from KnownJob::plan. slurm_place() returns nullopt if the job does not run
// on Slurm.
struct SlurmPlace {
  std::string job;  // Slurm's current id: a chain continues under new ids
  std::string folder;
  std::string output;
  // Of a sweep: how its rows are spread over arrays, and what another submission needs.
  RowSpread spread = {};
  // Slurm's ids of the arrays behind the first, whose id is `job`; empty: no row of it was to run.
  std::vector<std::string> more = {};
  std::string working = {};  // folder in which sbatch is called
  std::optional<std::int64_t> at_once = {};
  std::vector<std::string> settings = {};   // words in front of the script
  std::vector<std::string> arguments = {};  // words behind the script

  // Returns Slurm's ids of all arrays, by their index, or the one id of any other job.
  std::vector<std::string> jobs() const;
  void set_jobs(std::vector<std::string> jobs);
  // Returns SbatchCall::first_row of an array.
  std::optional<std::size_t> first_row_to_tell(std::size_t index) const {
    return more.empty() ? std::nullopt : std::optional(spread.first_row + index * spread.rows);
  }
};
std::optional<SlurmPlace> slurm_place(const jobs::KnownJob& job);
// Like slurm_place(), but nullopt for a job submitted on a login host elsewhere.
std::optional<SlurmPlace> slurm_place_here(const jobs::KnownJob& job);
std::string plan_text(const SlurmPlace& place);
std::string plan_text(const SlurmPlace& place, const rows::Table& table,
                      const std::vector<std::size_t>& rows);
// Returns the batch step's record of a job submitted here; nullopt: nothing yet.
std::optional<slurm::BatchState> slurm_state(const jobs::KnownJob& job, const SlurmPlace& place);
// Returns whether the word matches only the beginning of the job's id: the user may mean a Slurm
// id.
bool begins_only(const jobs::KnownJob& job, const std::string& word);
// Like JobBook::find(), and finds a chain or a sweep by each id that Slurm gave it.
Result<jobs::KnownJob> find_job(const jobs::JobBook& book, const std::string& word);

}  // namespace lockstep::jobs::on_slurm
