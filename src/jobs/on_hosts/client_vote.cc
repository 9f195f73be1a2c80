#include "jobs/on_hosts/client_vote.h"

#include "base/log.h"
#include "base/text.h"
#include "jobs/on_hosts/job_plan.h"

#include <algorithm>
#include <utility>

namespace lockstep::jobs::on_hosts {

std::optional<VotePlan> vote_plan(const JobRequest& request, const StartedJob& started,
                                  const std::string& run_id, const std::vector<std::string>& own) {
  if (!request.client_votes) return {};
  VotePlan plan{.hubs = {}, .run_id = run_id, .token = {}};
  for (const std::string& text : split(started.endpoint, ',')) {
    const auto hub = codec::parse_rdzv_endpoint(text, 0);
    if (!hub || std::find(own.begin(), own.end(), hub->host) != own.end()) return {};
    plan.hubs.push_back(*hub);
  }
  const std::string token = std::string(kTokenVariable) + "=";
  for (const std::string& entry : request.spec.env)
    if (entry.starts_with(token)) plan.token = entry.substr(token.size());
  return plan.hubs.size() == 2 && !plan.token.empty() ? std::optional(std::move(plan))
                                                      : std::nullopt;
}

ClientVote::ClientVote(io::Loop& loop, VotePlan plan, std::vector<hosts::HostPlace> places,
                       hosts::OpenLink open_link)
    : loop_(loop),
      plan_(std::move(plan)),
      places_(std::move(places)),
      open_link_(std::move(open_link)),
      vote_(loop, {.run_id = plan_.run_id,
                   .token = plan_.token,
                   .name = "the client of run --on",
                   .way = [this](std::size_t host) {
                     const Way& way = ways_.at(host);
                     return way.ready ? way.forward->port() : 0;
                   }}) {}

void ClientVote::reach(std::size_t host) {
  Way& way = ways_.at(host);
  if (way.ready) return;
  way = {};
  const codec::RdzvEndpoint& hub = plan_.hubs.at(host);
  auto opened = hosts::LinkForward::open(
      loop_, {.place = places_.at(host)}, {.local = 0, .host = hub.host, .port = hub.port},
      {.ready = [&way] { way.ready = true; },
       .trouble = [](const Error&) {},  // usual: no hub is open there
       .failed = [&way](const Error&) { way.ready = false; }},
      open_link_);
  if (!opened)
    return log::warning("this client has no vote in the job: {}", opened.error().message);
  way.forward = std::move(*opened);
}

}  // namespace lockstep::jobs::on_hosts
