// The folder of a submitted job, slurm/ID in the state folder. All nodes must see it. Contents:
//   script      the text that sbatch was given
//   token       the shared secret by which the job's agents recognize each other
//   state.json  the BatchState; replaced atomically by the batch step or its deputy
//   reports/    one report per agent, named by run and node
//   ranks/      output of the ranks
//   watch/      heartbeats, see watch_folder.h
//   preflight-RUN.json  what the nodes decided before the ranks of a run
//   next.json   the words of the sbatch call for the next job of a chain
//   runs/JOB    how many runs the earlier jobs of a chain had
//   rows.csv    of a sweep: its rows
//   rows/N/     of an array: the same for the task that runs row N, made by its batch step
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

inline constexpr const char* kRunsFolder = "runs";
// The rows of a sweep, as CSV.
inline constexpr const char* kRowsFile = "rows.csv";

enum class Stage { running, requeued, ended };

// The state of a job as its batch step or deputy wrote it last.
struct BatchState {
  Stage stage = Stage::running;
  std::string job = {};  // Slurm's id of the job
  // The number of the job as srun takes it, which refuses the id "12_3" of an array's task. Empty:
  // an older version wrote the state.
  std::string number = {};
  int run = 0;            // number of runs before the present one
  std::string host = {};  // node of the batch step or its deputy
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  int code = 0;            // exit code; valid for Stage::ended
  std::string cause = {};  // cause_name()
  std::string words = {};
  std::vector<std::string> earlier = {};  // the causes of the runs before this one
  std::vector<std::string> jobs = {};     // Slurm's ids of those runs
  std::string next = {};                  // Slurm's id of the successor job in a chain; empty: none
  // The next four fields let a deputy continue the work of the batch step.
  bool requeue = false;  // requeue after endings that a new run can mend
  // A chain continues in a new job where Slurm does not queue the same job again. Most
  // continuations after a time limit; 0: no limit on them. nullopt: the job is not a chain.
  std::optional<int> chain = {};
  int lead_s = 0;  // seconds before the time limit at which the ranks are stopped; 0: never
  std::string output = {};  // file of the job's output; empty: not a file
  // Of an ended row: the last step that its output shows. Empty line: none.
  std::int64_t step = 0;
  std::string step_line = {};
};
// Print and parse state.json. Errors: corrupt.
std::string state_text(const BatchState& state);
Result<BatchState> state_from_text(std::string_view text);
// Returns Slurm's id of the job that runs or will run. In a chain the id changes from job to job.
std::string_view job_now(const BatchState& state);

class JobFolder {
 public:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}
  // Creates the folder of a new job, mode 0700. id: Lockstep's name for it, not Slurm's id.
  static Result<JobFolder> create(const std::string& id);
  // Returns the path of a job's folder, existing or not.
  static std::string place(const std::string& id);

  const std::string& path() const { return path_; }
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string report(int run, std::string_view node) const;
  std::string preflight(int run) const { return at("preflight-" + std::to_string(run) + ".json"); }

  // Writes state.json durably.
  Status keep(const BatchState& state) const;
  Result<BatchState> state() const;  // not_found: the batch step has not begun
  // Returns the folders of the launches in a user's own script, latest first.
  std::vector<std::string> launches() const;
  // Returns the script job's folder if this folder belongs to a launch; nullopt: not a launch.
  std::optional<std::string> of_script() const;
  // Returns the path of a row's folder, existing or not.
  std::string row(std::size_t number) const { return at("rows/" + std::to_string(number)); }
  // Returns the number of the row that this folder belongs to; nullopt: not a row's folder.
  std::optional<std::size_t> number_of_row() const;
  // Returns whether this is a row's folder, or the folder of a launch in a row's own script.
  bool is_in_row() const;
  // Makes a row's folder. shared: names of files that the row shares with the whole job, if there.
  // A requeued task finds its folder made.
  Status make_row(const std::vector<std::string>& shared) const;
  // Returns Lockstep's id of the job: the name of the whole job's folder.
  std::string job_id() const;
  // How many runs a chain had before Slurm's job `job`. Slurm counts restarts per job only.
  int runs_before(std::string_view job) const;
  Status note_runs_before(std::string_view job, int runs) const;
  // Returns the texts of all agents' reports of one run.
  std::vector<std::string> reports(int run) const;
  // Returns the texts of all agents' reports of the last run: of the last launch of a user's
  // script.
  std::vector<std::string> last_reports() const;

 private:
  std::string path_;
};

}  // namespace lockstep::slurm
