#include "jobs/on_hosts/job_plan.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "rows/table.h"

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

// Returns whether the words before "--" list several endpoints. After "--" the script's own words
// come.
bool lists_endpoints(const std::vector<std::string>& words) {
  return std::any_of(
      words.begin(), std::find(words.begin(), words.end(), "--"), [](const std::string& word) {
        return word.starts_with("--rdzv-endpoint=") && word.find(',') != std::string::npos;
      });
}

// Returns whether another node may host the rendezvous if a lost node hosted it.
bool may_be_hosted_elsewhere(const JobRequest& request) {
  // Lockstep's own list begins with node 0. The lost nodes are in order.
  if (request.nodes.front() == 0 && lists_endpoints(request.words.front())) return true;
  // The user's list may begin with any node, or name servers of etcd.
  const auto& run = request.spec.run;
  return lists_endpoints(run) && std::none_of(run.begin(), std::find(run.begin(), run.end(), "--"),
                                              [](const std::string& word) {
                                                return word.starts_with("--rdzv-backend=") &&
                                                       word != "--rdzv-backend=lockstep";
                                              });
}

// Keeps the resumed nodes from hosting the rendezvous at once: a second rendezvous would never meet
// the first. They may still take over later.
void join_as_guests(job::JobSpec& spec) {
  constexpr std::string_view kConf = "--rdzv-conf=";
  constexpr std::string_view kVariable = "PET_RDZV_CONF=";
  const auto add = [](std::string& text) {
    text += text.ends_with('=') ? "is_host=0" : ",is_host=0";
  };
  const auto options_end = std::find(spec.run.begin(), spec.run.end(), "--");
  // A second setting would replace the user's.
  for (auto word = spec.run.begin(); word != options_end; ++word)
    if (word->starts_with(kConf)) return add(*word);
  for (std::string& entry : spec.env)
    if (entry.starts_with(kVariable)) return add(entry);
  spec.run.insert(spec.run.begin(), std::string(kConf) + "is_host=0");
}

Failure nobody_knows_the_host(const jobs::KnownJob& job, const LostParts& parts) {
  std::vector<std::string> silent;
  for (const int node : parts.unknown)
    silent.push_back(job.nodes[static_cast<std::size_t>(node)].name);
  return fail(
      Errc::unavailable,
      fmt::format("no answer from {}, where the job may go on with a new host of the "
                  "rendezvous, so nothing is started again",
                  join(silent, ", ")),
      fmt::format("run lockstep resume {} once all hosts answer, or cancel the job and start "
                  "it anew",
                  job.id));
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
    // Queued parts have no rendezvous yet: they need the lost node to host it.
    if (answered && record && record->state.stage == job::Stage::running) parts.runs = true;
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
  request.mixed_hosts = true;  // decided when the job began
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
    request.words.push_back(std::move(own));
  }
  if (!request.nodes.empty() && may_be_hosted_elsewhere(request)) {
    if (!parts.runs && !parts.unknown.empty()) return nobody_knows_the_host(job, parts);
    if (parts.runs) join_as_guests(request.spec);
  }
  return request;
}

Result<JobRequest> rows_request(const jobs::KnownJob& job, const std::vector<std::size_t>& rows,
                                const std::vector<std::string>& env) {
  LostParts all;
  for (std::size_t node = 0; node < job.nodes.size(); ++node)
    all.lost.push_back(static_cast<int>(node));
  LOCKSTEP_TRY_ASSIGN(JobRequest request, resumed_request(job, all, env));
  constexpr std::string_view kOnly = "--sweep-only=";
  std::vector<std::string>& run = request.spec.run;
  const auto options_end = std::find(run.begin(), run.end(), "--");
  run.erase(std::remove_if(run.begin(), options_end,
                           [&](const std::string& word) { return word.starts_with(kOnly); }),
            options_end);
  run.insert(run.begin(), std::string(kOnly) + rows::print_row_set(rows));
  return request;
}

}  // namespace lockstep::jobs::on_hosts
