#include "cluster/job_plan.h"

#include "codec/json.h"

#include <utility>

namespace lockstep::cluster {

std::string plan_text(const JobRequest& request, const StartedJob& started) {
  job::JobSpec spec = request.spec;
  std::erase_if(spec.env, [](const std::string& entry) {
    return !entry.starts_with(std::string(kTokenVariable) + "=");
  });
  spec.nodes = static_cast<int>(request.hosts.size());
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < request.hosts.size(); ++i) {
    std::vector<std::string> own;
    if (i < request.words.size()) own = request.words[i];
    if (!started.endpoint.empty()) own.push_back("--rdzv-endpoint=" + started.endpoint);
    words.push_back(std::move(own));
  }
  return codec::print_json(nlohmann::ordered_json{{"spec", to_json(spec)}, {"words", words}});
}

Result<JobRequest> resumed_request(const KnownJob& job, const std::vector<int>& nodes,
                                   const std::vector<std::string>& env) {
  const nlohmann::json plan = codec::parse_json(job.plan, {.bytes = 64UL << 20});
  const Failure unreadable = fail(
      Errc::corrupt, "what is kept of job " + job.id + " is not readable, so it can't be resumed");
  if (!plan.is_object() || !plan.contains("spec") || !plan.contains("words") ||
      !plan["words"].is_array() || plan["words"].size() != job.nodes.size())
    return unreadable;
  JobRequest request;
  LOCKSTEP_TRY_ASSIGN(request.spec, job::spec_from_json(plan["spec"]));
  request.spec.resumes = true;
  request.spec.env.insert(request.spec.env.end(), env.begin(), env.end());
  for (const int node : nodes) {
    const auto number = static_cast<std::size_t>(node);
    request.hosts.push_back(job.nodes[number]);
    request.nodes.push_back(node);
    std::vector<std::string> own;
    for (const nlohmann::json& word : plan["words"][number]) {
      if (!word.is_string()) return unreadable;
      own.push_back(word.get<std::string>());
    }
    request.words.push_back(std::move(own));
  }
  return request;
}

}  // namespace lockstep::cluster
