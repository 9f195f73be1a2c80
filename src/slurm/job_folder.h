// The folder of a job that Lockstep has submitted, slurm/ID in the state folder, which all nodes
// see:
//   script      what sbatch was given
//   token       with which the agents know each other
//   state.json  the BatchState, replaced at once; by whoever speaks for the job
//   reports/    of each agent, named by the run and the node
//   ranks/      what each rank has said
//   watch/      who speaks for the job, see watch_folder.h
//   preflight-RUN.json  what the nodes have decided before the ranks of a run
//   next.json   with which words sbatch is called for the next job of a chain
//   runs/JOB    how many runs the jobs before one of a chain have had
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

inline constexpr const char* kRunsFolder = "runs";

enum class Stage { running, requeued, ended };

// How the batch step has left the job.
struct BatchState {
  Stage stage = Stage::running;
  std::string job = {};   // Slurm's id
  int run = 0;            // how many there were before this one
  std::string host = {};  // of the batch step
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  int code = 0;            // Stage::ended
  std::string cause = {};  // cause_name()
  std::string words = {};
  std::vector<std::string> earlier = {};  // the causes of the runs before this one
  std::vector<std::string> jobs = {};     // Slurm's ids of those runs
  std::string next = {};  // of the job that goes on in this one's place; empty: there is none
  // For whoever takes the batch step's place:
  bool requeue = false;  // where another run is worth it
  // A chain: where Slurm does not queue the job again a new one goes on; how often at most the time
  // limit may be the cause of that, 0: as often as it comes. nullopt: it is none.
  std::optional<int> chain = {};
  int lead_s = 0;           // the ranks are stopped so long before the time limit; 0: they are not
  std::string output = {};  // the file of the job's output; empty: there is none
};
std::string state_text(const BatchState& state);
Result<BatchState> state_from_text(std::string_view text);
// Slurm's id of the job that goes on, or is to: another one than it began as, in a chain.
std::string_view job_now(const BatchState& state);

class JobFolder {
 public:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}
  // For a new job, 0700.
  static Result<JobFolder> create(const std::string& id);
  static std::string place(const std::string& id);

  const std::string& path() const { return path_; }
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string report(int run, std::string_view node) const;
  std::string preflight(int run) const { return at("preflight-" + std::to_string(run) + ".json"); }

  Status keep(const BatchState& state) const;
  Result<BatchState> state() const;  // not_found: the batch step has not begun
  // The folders of the launches in a user's own script, the latest first.
  std::vector<std::string> launches() const;
  // Of the job, where this is the folder of such a launch.
  std::optional<std::string> of_script() const;
  // Of jobs of Slurm's before this one, which has its own count of them.
  int runs_before(std::string_view job) const;
  Status note_runs_before(std::string_view job, int runs) const;
  // The texts of the reports of one run.
  std::vector<std::string> reports(int run) const;

 private:
  std::string path_;
};

}  // namespace lockstep::slurm
