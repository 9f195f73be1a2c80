#include "job/job_spec.h"

#include "base/id.h"

#include <algorithm>
#include <array>

namespace lockstep::job {
namespace {

constexpr std::array<std::string_view, 5> kStages = {"prepared", "queued", "running", "ended",
                                                     "lost"};
constexpr std::size_t kShortestId = 4;
constexpr std::size_t kLongestId = 63;

// Reads the members of one object. done() reports the first missing member or wrong type.
class Members {
 public:
  explicit Members(const nlohmann::json& json) : json_(json) {
    if (!json.is_object()) wrong_ = "it is not an object";
  }

  void text(const char* name, std::string& out) {
    if (const auto* value = find(name, "a text", &nlohmann::json::is_string))
      out = value->get<std::string>();
  }
  void flag(const char* name, bool& out) {
    if (const auto* value = find(name, "true or false", &nlohmann::json::is_boolean))
      out = value->get<bool>();
  }
  template <class Number>
  void number(const char* name, Number& out) {
    if (const auto* value = find(name, "a number", &nlohmann::json::is_number_integer))
      out = value->get<Number>();
  }
  void texts(const char* name, std::vector<std::string>& out) {
    const auto* value = find(name, "a list", &nlohmann::json::is_array);
    if (value == nullptr) return;
    for (const nlohmann::json& each : *value) {
      if (!each.is_string()) return refuse(name, "a list of texts");
      out.push_back(each.get<std::string>());
    }
  }
  void require(bool fact, const char* name, const char* what) {
    if (!fact) refuse(name, what);
  }
  Status done(const char* of) const {
    if (wrong_.empty()) return {};
    return fail(Errc::corrupt, std::string(of) + " is invalid: " + wrong_);
  }

 private:
  using Check = bool (nlohmann::json::*)() const noexcept;
  const nlohmann::json* find(const char* name, const char* what, Check check) {
    if (!wrong_.empty()) return nullptr;
    const auto at = json_.find(name);
    if (at != json_.end() && ((*at).*check)()) return &*at;
    refuse(name, what);
    return nullptr;
  }
  void refuse(const char* name, const char* what) {
    if (wrong_.empty()) wrong_ = std::string("'") + name + "' is not " + what;
  }

  const nlohmann::json& json_;
  std::string wrong_;
};

}  // namespace

bool is_job_id(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return text.size() >= kShortestId && text.size() <= kLongestId && plain(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return plain(c) || c == '-'; });
}

std::string new_job_id() {
  std::string id = random_uuid4();
  std::erase(id, '-');
  return id.substr(0, 8);
}

nlohmann::ordered_json to_json(const JobSpec& spec) {
  return {{"id", spec.id},         {"name", spec.name},
          {"node", spec.node},     {"nodes", spec.nodes},
          {"run", spec.run},       {"env", spec.env},
          {"folder", spec.folder}, {"client", spec.client},
          {"queue", spec.queue},   {"created_ms", spec.created_ms},
          {"after", spec.after},   {"resumes", spec.resumes}};
}

Result<JobSpec> spec_from_json(const nlohmann::json& json) {
  JobSpec spec;
  Members members(json);
  members.text("id", spec.id);
  members.text("name", spec.name);
  members.number("node", spec.node);
  members.number("nodes", spec.nodes);
  members.texts("run", spec.run);
  members.texts("env", spec.env);
  members.text("folder", spec.folder);
  members.text("client", spec.client);
  members.flag("queue", spec.queue);
  members.number("created_ms", spec.created_ms);
  members.texts("after", spec.after);
  members.flag("resumes", spec.resumes);
  members.require(is_job_id(spec.id), "id", "the id of a job");
  members.require(spec.node >= 0 && spec.node < spec.nodes, "node", "one of the nodes");
  LOCKSTEP_TRY(members.done("the job"));
  return spec;
}

std::string_view stage_name(Stage stage) {
  return kStages[static_cast<std::size_t>(stage)];
}

std::optional<Stage> stage_of(std::string_view name) {
  for (std::size_t i = 0; i < kStages.size(); ++i)
    if (kStages[i] == name) return static_cast<Stage>(i);
  return std::nullopt;
}

nlohmann::ordered_json to_json(const JobState& state) {
  return {{"stage", stage_name(state.stage)},
          {"supervisor", state.supervisor},
          {"started_ms", state.started_ms},
          {"ended_ms", state.ended_ms},
          {"code", state.code},
          {"canceled", state.canceled},
          {"problem", state.problem}};
}

Result<JobState> state_from_json(const nlohmann::json& json) {
  JobState state;
  std::string stage;
  Members members(json);
  members.text("stage", stage);
  members.number("supervisor", state.supervisor);
  members.number("started_ms", state.started_ms);
  members.number("ended_ms", state.ended_ms);
  members.number("code", state.code);
  members.flag("canceled", state.canceled);
  members.text("problem", state.problem);
  const auto known = stage_of(stage);
  members.require(known.has_value(), "stage", "a stage");
  LOCKSTEP_TRY(members.done("the state of a job"));
  state.stage = *known;
  return state;
}

nlohmann::ordered_json to_json(const JobRecord& record) {
  nlohmann::ordered_json spec = to_json(record.spec);
  spec.erase("env");
  return {{"spec", std::move(spec)}, {"state", to_json(record.state)}};
}

Result<JobRecord> record_from_json(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("spec") || !json.contains("state"))
    return fail(Errc::corrupt, "the record of a job is unreadable");
  nlohmann::json spec = json["spec"];
  if (spec.is_object()) spec["env"] = nlohmann::json::array();
  JobRecord record;
  LOCKSTEP_TRY_ASSIGN(record.spec, spec_from_json(spec));
  LOCKSTEP_TRY_ASSIGN(record.state, state_from_json(json["state"]));
  return record;
}

}  // namespace lockstep::job
