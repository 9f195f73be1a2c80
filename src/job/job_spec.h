// What one host is asked to run of a job, and how it goes there, as JSON between client and host.
// Pure.
#pragma once

#include "base/error.h"
#include "codec/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

struct JobSpec {
  std::string id;    // of all hosts' parts alike
  std::string name;  // for people
  int node = 0;
  int nodes = 1;
  std::vector<std::string> run;         // the words behind `lockstep run`
  std::vector<std::string> env;         // "NAME=value"; may be secret, so it is never written down
  std::string folder;                   // where it runs, relative to the home or absolute
  std::string client;                   // who started it: "me@laptop"
  std::int64_t created_ms = 0;          // Unix time, by the client's clock
  bool queue = false;                   // waits for the earlier jobs of this user on the host
  std::vector<std::string> after = {};  // jobs that were ahead of it on one of its hosts
  bool resumes = false;                 // a part of the job that was lost begins again
};

// 4 to 63 of a-z 0-9 -, beginning with a letter or digit: it names a folder.
bool is_job_id(std::string_view text);
std::string new_job_id();  // eight letters and digits

nlohmann::ordered_json to_json(const JobSpec& spec);
Result<JobSpec> spec_from_json(const nlohmann::json& json);

enum class Stage {
  prepared,  // the supervisor waits for the other hosts
  queued,    // it waits for an earlier job here
  running,
  ended,
  lost,  // the supervisor was killed, or the machine was: nothing of it runs
};
std::string_view stage_name(Stage stage);
std::optional<Stage> stage_of(std::string_view name);

struct JobState {
  Stage stage = Stage::prepared;
  std::int64_t supervisor = 0;  // its pid there
  std::int64_t started_ms = 0;  // 0: not yet
  std::int64_t ended_ms = 0;
  int code = 0;  // as a shell has it; Stage::ended
  bool canceled = false;
  std::string problem = {};  // why it could not start, or what has stopped it if no person did
};
nlohmann::ordered_json to_json(const JobState& state);
Result<JobState> state_from_json(const nlohmann::json& json);

// Of one job on one host, as the host tells it: the spec without its environment, and the state.
struct JobRecord {
  JobSpec spec;
  JobState state;
};
nlohmann::ordered_json to_json(const JobRecord& record);
Result<JobRecord> record_from_json(const nlohmann::json& json);

}  // namespace lockstep::job
