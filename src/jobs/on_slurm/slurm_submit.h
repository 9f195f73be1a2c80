// Submits a job to this machine's Slurm: makes the job's folder and script, calls sbatch, and
// records the job for `lockstep jobs`, logs, wait and cancel.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_world.h"
#include "slurm/job_folder.h"
#include "slurm/job_plan.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

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

// Where a Slurm job is, from KnownJob::plan. slurm_place() returns nullopt if the job does not run
// on Slurm.
struct SlurmPlace {
  std::string job;  // Slurm's current id: a chain continues under new ids
  std::string folder;
  std::string output;
};
std::optional<SlurmPlace> slurm_place(const jobs::KnownJob& job);
// Like slurm_place(), but nullopt for a job submitted on a login host elsewhere.
std::optional<SlurmPlace> slurm_place_here(const jobs::KnownJob& job);
std::string plan_text(const SlurmPlace& place);
// Returns the batch step's record of a job submitted here; nullopt: nothing yet.
std::optional<slurm::BatchState> slurm_state(const jobs::KnownJob& job, const SlurmPlace& place);
// Returns whether the word matches only the beginning of the job's id: the user may mean a Slurm
// id.
bool begins_only(const jobs::KnownJob& job, const std::string& word);
// Like JobBook::find(), and finds the job of a chain by each id that Slurm gave it.
Result<jobs::KnownJob> find_job(const jobs::JobBook& book, const std::string& word);

}  // namespace lockstep::jobs::on_slurm
