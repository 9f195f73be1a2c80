// The folder of a job that Lockstep has submitted, slurm/ID in the state folder, which all nodes
// see:
//   script      what sbatch was given
//   token       with which the agents know each other
//   state.json  the BatchState, replaced at once; by whoever speaks for the job
//   reports/    of each agent, named by the run and the node
//   ranks/      what each rank has said
//   watch/      who speaks for the job, see watch_folder.h
//   preflight-RUN.json  what the nodes have decided before the ranks of a run
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class Stage { running, requeued, ended };

// How the batch step has left the job.
struct BatchState {
  Stage stage = Stage::running;
  std::string job = {};   // Slurm's id
  int run = 0;            // how often it was requeued before
  std::string host = {};  // of the batch step
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  int code = 0;            // Stage::ended
  std::string cause = {};  // cause_name()
  std::string words = {};
  std::vector<std::string> earlier = {};  // the causes of the runs before this one
  // For whoever takes the batch step's place:
  bool requeue = false;     // where another run is worth it
  int lead_s = 0;           // the ranks are stopped so long before the time limit; 0: they are not
  std::string output = {};  // the file of the job's output; empty: there is none
};
std::string state_text(const BatchState& state);
Result<BatchState> state_from_text(std::string_view text);

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
  // The texts of the reports of one run.
  std::vector<std::string> reports(int run) const;

 private:
  std::string path_;
};

}  // namespace lockstep::slurm
