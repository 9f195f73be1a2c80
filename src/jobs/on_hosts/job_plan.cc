#include "jobs/on_hosts/job_plan.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

// Returns the name in "NAME=value".
std::string name_of(std::string_view entry) {
  return std::string(entry.substr(0, entry.find('=')));
}

// Returns whether the environment sets the variable.
bool gives(const std::vector<std::string>& env, const std::string& name) {
  return std::any_of(env.begin(), env.end(),
                     [&](const std::string& entry) { return name_of(entry) == name; });
}

Status check_secrets(const jobs::KnownJob& job, const std::vector<std::string>& secrets,
                     const std::vector<std::string>& env) {
  std::string missing;
  for (const std::string& name : secrets)
    if (!gives(env, name)) missing += (missing.empty() ? "--secret " : " --secret ") + name;
  if (missing.empty()) return {};
  return fail(Errc::invalid_input,
              fmt::format("job {} was started with secrets, which are not kept", job.id),
              "give them again: " + printable(missing));
}

// Keeps a resumed node 0 from hosting the rendezvous, if another node may have taken over: a second
// rendezvous at node 0 would never meet the first. `run` is the user's words, which end with "--"
// and the script.
void join_as_guest(std::vector<std::string>& run, std::vector<std::string>& own) {
  constexpr std::string_view kConf = "--rdzv-conf=";
  constexpr std::string_view kGuest = "is_host=0";
  for (std::string& word : run) {
    if (word == "--") break;
    // A second --rdzv-conf would replace the user's.
    if (word.starts_with(kConf)) {
      word += (word.size() > kConf.size() ? "," : "") + std::string(kGuest);
      return;
    }
  }
  own.push_back(std::string(kConf) + std::string(kGuest));
}

bool lists_endpoints(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("--rdzv-endpoint=") && word.find(',') != std::string::npos;
  });
}

}  // namespace

std::string plan_text(const JobRequest& request, const StartedJob& started) {
  job::JobSpec spec = request.spec;
  // The plan is kept in a file, so the values of secrets must not enter it.
  std::erase_if(spec.env, [&](const std::string& entry) {
    return std::find(request.secrets.begin(), request.secrets.end(), name_of(entry)) !=
           request.secrets.end();
  });
  spec.nodes = static_cast<int>(request.hosts.size());
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < request.hosts.size(); ++i) {
    std::vector<std::string> own;
    if (i < request.words.size()) own = request.words[i];
    // A resumed node must use the endpoint found at the start.
    if (!started.endpoint.empty()) own.push_back("--rdzv-endpoint=" + started.endpoint);
    words.push_back(std::move(own));
  }
  return codec::print_json(nlohmann::ordered_json{
      {"spec", to_json(spec)}, {"words", words}, {"secrets", request.secrets}});
}

LostParts lost_parts(const std::vector<PartAnswer>& answers) {
  LostParts parts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& [answered, record] = answers[i];
    if (!answered)
      parts.unknown.push_back(static_cast<int>(i));
    else if (!record || record->state.stage == job::Stage::lost)
      parts.lost.push_back(static_cast<int>(i));
    if (!answered || (record && record->state.stage < job::Stage::ended)) parts.goes_on = true;
  }
  return parts;
}

Result<JobRequest> resumed_request(const jobs::KnownJob& job, const LostParts& parts,
                                   const std::vector<std::string>& env) {
  const nlohmann::json plan = codec::parse_json(job.plan, {.bytes = 64UL << 20});
  const Failure unreadable =
      fail(Errc::corrupt,
           "the stored plan of job " + job.id + " is not readable, so the job can't be resumed");
  if (!plan.is_object() || !plan.contains("spec") || !plan.contains("words") ||
      !plan["words"].is_array() || plan["words"].size() != job.nodes.size())
    return unreadable;
  JobRequest request;
  LOCKSTEP_TRY_ASSIGN(request.spec, job::spec_from_json(plan["spec"]));
  // The folder of the lost part may still be on the host. A part that resumes may use the folder
  // again.
  request.spec.resumes = true;
  const std::vector<std::string> secrets = codec::texts_member(plan, "secrets");
  LOCKSTEP_TRY(check_secrets(job, secrets, env));
  request.secrets = secrets;
  std::erase_if(request.spec.env,
                [&](const std::string& entry) { return gives(env, name_of(entry)); });
  // New values replace stored values, such as an expired token.
  request.spec.env.insert(request.spec.env.end(), env.begin(), env.end());
  for (const int node : parts.lost) {
    const auto number = static_cast<std::size_t>(node);
    request.hosts.push_back(job.nodes[number]);
    request.nodes.push_back(node);
    std::vector<std::string> own;
    for (const nlohmann::json& word : plan["words"][number]) {
      if (!word.is_string()) return unreadable;
      own.push_back(word.get<std::string>());
    }
    if (node == 0 && parts.goes_on && lists_endpoints(own)) join_as_guest(request.spec.run, own);
    request.words.push_back(std::move(own));
  }
  return request;
}

}  // namespace lockstep::jobs::on_hosts
