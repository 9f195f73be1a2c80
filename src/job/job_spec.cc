#include "job/job_spec.h"

#include "base/id.h"
#include "codec/json_fields.h"
#include "rows/table.h"

#include <algorithm>
#include <array>

namespace lockstep::job {
namespace {

constexpr std::array<std::string_view, 5> kStages = {"prepared", "queued", "running", "ended",
                                                     "lost"};
constexpr std::size_t kShortestId = 4;
constexpr std::size_t kLongestId = 63;

// Reads strictly: a part of a job that another version would start differently must not start.
template <class Value>
Result<Value> read_strictly(const nlohmann::json& json, std::string_view what) {
  Value value;
  if (const Status read = codec::read_fields(json, value); !read)
    return fail(Errc::corrupt, std::string(what) + " is invalid: " + read.error().message);
  return value;
}

}  // namespace

bool is_job_id(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return text.size() >= kShortestId && text.size() <= kLongestId && plain(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return plain(c) || c == '-'; });
}

std::string job_id_of(std::string uuid) {
  std::erase(uuid, '-');
  return uuid.substr(0, 8);
}

std::string new_job_id() {
  // Short enough for a user to type.
  return job_id_of(random_uuid4());
}

static void fields(codec::JsonFields& io, JobSpec& spec) {
  io("id", spec.id);
  io("name", spec.name);
  io("node", spec.node);
  io("nodes", spec.nodes);
  io("run", spec.run);
  io("env", spec.env);
  io("folder", spec.folder);
  io("client", spec.client);
  io("queue", spec.queue);
  io("created_ms", spec.created_ms);
  io("after", spec.after);
  io("resumes", spec.resumes);
  io.optional("rows", spec.rows);
  io.optional("image", spec.image);
  io.require(is_job_id(spec.id), "id", "the id of a job");
  io.require(spec.rows >= 0 && spec.rows <= static_cast<std::int64_t>(rows::kMostRows), "rows",
             "a number of rows");
  io.require(spec.node >= 0 && spec.node < spec.nodes, "node", "one of the nodes");
}

static void fields(codec::JsonFields& io, PartState& state) {
  io("stage", state.stage, kStages);
  io("supervisor", state.supervisor);
  io("started_ms", state.started_ms);
  io("ended_ms", state.ended_ms);
  io("code", state.code);
  io("canceled", state.canceled);
  io("problem", state.problem);
}

// The compiler looks for fields() in the namespace of the struct.
struct RowsOfPart {
  std::string done = {};
  std::string running = {};
  std::string failed = {};
  std::string lost = {};
};

static void fields(codec::JsonFields& io, RowsOfPart& part) {
  io("done", part.done);
  io("running", part.running);
  io("failed", part.failed);
  io("lost", part.lost);
}

namespace {

Result<std::vector<std::size_t>> read_rows(const std::string& text) {
  if (text.empty()) return std::vector<std::size_t>();
  return rows::read_row_set(text, rows::kMostRows);
}

nlohmann::ordered_json rows_json(const rows::RowSets& sets) {
  return codec::write_fields(RowsOfPart{.done = rows::print_row_set(sets.done),
                                        .running = rows::print_row_set(sets.running),
                                        .failed = rows::print_row_set(sets.failed),
                                        .lost = rows::print_row_set(sets.lost)});
}

Result<rows::RowSets> rows_from_json(const nlohmann::json& json) {
  LOCKSTEP_TRY_ASSIGN(const auto part, read_strictly<RowsOfPart>(json, "the rows of a job"));
  rows::RowSets sets;
  LOCKSTEP_TRY_ASSIGN(sets.done, read_rows(part.done));
  LOCKSTEP_TRY_ASSIGN(sets.running, read_rows(part.running));
  LOCKSTEP_TRY_ASSIGN(sets.failed, read_rows(part.failed));
  LOCKSTEP_TRY_ASSIGN(sets.lost, read_rows(part.lost));
  return sets;
}

}  // namespace

nlohmann::ordered_json to_json(const JobSpec& spec) {
  return codec::write_fields(spec);
}

Result<JobSpec> spec_from_json(const nlohmann::json& json) {
  return read_strictly<JobSpec>(json, "the job");
}

std::string_view stage_name(Stage stage) {
  return kStages[static_cast<std::size_t>(stage)];
}

std::optional<Stage> stage_of(std::string_view name) {
  for (std::size_t i = 0; i < kStages.size(); ++i)
    if (kStages[i] == name) return static_cast<Stage>(i);
  return std::nullopt;
}

nlohmann::ordered_json to_json(const PartState& state) {
  return codec::write_fields(state);
}

Result<PartState> state_from_json(const nlohmann::json& json) {
  return read_strictly<PartState>(json, "the state of a job");
}

nlohmann::ordered_json to_json(const JobRecord& record) {
  nlohmann::ordered_json spec = to_json(record.spec);
  // A record goes to files and to other hosts. Values of variables may be secrets.
  spec.erase("env");
  nlohmann::ordered_json json{{"spec", std::move(spec)}, {"state", to_json(record.state)}};
  if (record.spec.rows > 0) json["rows"] = rows_json(record.row_sets);
  return json;
}

Result<JobRecord> record_from_json(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("spec") || !json.contains("state"))
    return fail(Errc::corrupt, "the record of a job is unreadable");
  nlohmann::json spec = json["spec"];
  if (spec.is_object()) spec["env"] = nlohmann::json::array();
  JobRecord record;
  LOCKSTEP_TRY_ASSIGN(record.spec, spec_from_json(spec));
  LOCKSTEP_TRY_ASSIGN(record.state, state_from_json(json["state"]));
  if (record.spec.rows == 0) return record;
  LOCKSTEP_TRY_ASSIGN(record.row_sets, rows_from_json(json.value("rows", nlohmann::json())));
  return record;
}

}  // namespace lockstep::job
