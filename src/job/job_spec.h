// A host's part of a job, and its state, as JSON between client and host. Pure.
#pragma once

#include "base/error.h"
#include "codec/json.h"
#include "rows/row_book.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

struct JobSpec {
  std::string id;    // the same on all hosts of the job
  std::string name;  // shown to the user
  int node = 0;
  int nodes = 1;
  std::vector<std::string> run;         // the arguments of `lockstep run`
  std::vector<std::string> env;         // "NAME=value"; never stored, because values may be secret
  std::string folder;                   // the working folder, absolute or relative to the home
  std::string client;                   // the user who started the job: "me@laptop"
  std::int64_t created_ms = 0;          // Unix time, by the client's clock
  bool queue = false;                   // wait for earlier jobs of this user on the host
  std::vector<std::string> after = {};  // ids of the jobs ahead on any host of this job
  bool resumes = false;                 // restarts a part of the job that was lost
  std::int64_t rows = 0;                // of a sweep, on all hosts together; 0: no sweep
  std::string image = {};               // of --container; empty: no container
};

// Returns true for 4 to 63 of a-z 0-9 -, starting with a letter or digit. The id names a folder.
bool is_job_id(std::string_view text);
std::string new_job_id();                 // eight letters and digits
std::string job_id_of(std::string uuid);  // the same of a given UUID

nlohmann::ordered_json to_json(const JobSpec& spec);
Result<JobSpec> spec_from_json(const nlohmann::json& json);

enum class Stage {
  prepared,  // the supervisor waits for the job's other hosts
  queued,    // waits for an earlier job on this host
  running,
  ended,
  lost,  // the supervisor or the machine was killed: no process of the job runs
};
std::string_view stage_name(Stage stage);
std::optional<Stage> stage_of(std::string_view name);

struct PartState {
  Stage stage = Stage::prepared;
  std::int64_t supervisor = 0;  // pid on the host
  std::int64_t started_ms = 0;  // 0: not yet
  std::int64_t ended_ms = 0;
  int code = 0;  // exit code as a shell has it; only for Stage::ended
  bool canceled = false;
  std::string problem = {};  // the cause of a failed start, or of a stop without a user's request
};
nlohmann::ordered_json to_json(const PartState& state);
Result<PartState> state_from_json(const nlohmann::json& json);

// A job's part on one host, as reported by the host: the spec without its environment, and the
// state.
struct JobRecord {
  JobSpec spec;
  PartState state;
  rows::RowSets row_sets = {};  // of a sweep, on this host
};
nlohmann::ordered_json to_json(const JobRecord& record);
Result<JobRecord> record_from_json(const nlohmann::json& json);

}  // namespace lockstep::job
