#include "cli/job_json.h"

#include <utility>

namespace lockstep::cli {
namespace {

nlohmann::ordered_json host_json(const jobs::NodeStatus& node) {
  nlohmann::ordered_json json{{"name", node.name}, {"state", "unknown"}};
  // The host did not answer. An absent code says so: 0 would look like success.
  if (!node.state) return json;
  json["state"] = jobs::state_name(*node.state);
  if (node.code) json["code"] = *node.code;
  json["canceled"] = node.canceled;
  if (!node.problem.empty()) json["error"] = node.problem;
  return json;
}

}  // namespace

nlohmann::ordered_json job_json(const jobs::Job& job, const jobs::JobStatus& status) {
  const jobs::KnownJob& record = job.record();
  nlohmann::ordered_json json{{"id", record.id},
                              {"name", record.name},
                              {"on", record.place},
                              {"state", state_name(status.state)}};
  // Users of Slurm need Slurm's number for squeue and sacct.
  if (const std::string number = job.facts().number; !number.empty()) json["job"] = number;
  if (status.code) json["code"] = *status.code;
  json["canceled"] = status.canceled;
  if (status.ended_ms > 0) json["ended_ms"] = status.ended_ms;
  if (!status.why.empty()) json["why"] = status.why;
  json["hosts"] = nlohmann::ordered_json::array();
  for (const jobs::NodeStatus& node : status.nodes)
    json["hosts"].push_back(host_json(node));
  return json;
}

nlohmann::ordered_json started_json(const std::string& id, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& ahead) {
  return {{"id", id},
          {"state", state_name(jobs::started_state(ahead))},
          {"nodes", nodes},
          {"ahead", ahead}};
}

}  // namespace lockstep::cli
