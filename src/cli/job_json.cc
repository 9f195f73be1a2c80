#include "cli/job_json.h"

#include <utility>

namespace lockstep::cli {
namespace {

// A code is known only of what has ended.
void add_ending(nlohmann::ordered_json& json, job::Stage stage, std::optional<int> code,
                bool canceled) {
  json["state"] = job::stage_name(stage);
  if (stage == job::Stage::ended && code) json["code"] = *code;
  json["canceled"] = canceled;
}

}  // namespace

nlohmann::ordered_json job_json(const jobs::KnownJob& job,
                                const std::vector<std::optional<job::JobRecord>>& nodes) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nlohmann::ordered_json host{{"name", job.nodes[i].name}};
    if (nodes[i]) {
      const job::JobState& state = nodes[i]->state;
      add_ending(host, state.stage, state.code, state.canceled);
      if (!state.problem.empty()) host["error"] = state.problem;
    } else {
      host["state"] = "unknown";
    }
    hosts.push_back(std::move(host));
  }
  const jobs::JobEnding ending = jobs::ending_of(nodes);
  nlohmann::ordered_json json{{"id", job.id}, {"name", job.name}};
  add_ending(json, ending.stage, ending.code, ending.canceled);
  json["hosts"] = std::move(hosts);
  return json;
}

nlohmann::ordered_json started_json(const std::string& id, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& ahead) {
  return {{"id", id},
          {"state", job::stage_name(ahead.empty() ? job::Stage::running : job::Stage::queued)},
          {"nodes", nodes},
          {"ahead", ahead}};
}

nlohmann::ordered_json slurm_job_json(const jobs::KnownJob& job,
                                      const jobs::on_slurm::SlurmEnding& ending) {
  nlohmann::ordered_json json{{"id", job.id},
                              {"name", job.name},
                              {"on", job.place},
                              {"state", job::stage_name(ending.stage)}};
  if (const auto place = jobs::on_slurm::slurm_place(job)) json["job"] = place->job;
  if (ending.stage != job::Stage::ended) return json;
  json["code"] = ending.code;
  json["ended_ms"] = ending.ended_ms;
  json["words"] = ending.words;
  return json;
}

}  // namespace lockstep::cli
