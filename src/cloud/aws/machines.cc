#include "cloud/aws/machines.h"

#include "cloud/aws/answers.h"
#include "cloud/aws/places.h"

#include <algorithm>

namespace lockstep::cloud::aws {
namespace {

constexpr std::size_t kMostAtOnce = 100;

Query listing_query(const ListQuery& wanted) {
  Query query("DescribeInstances");
  query.add("MaxResults", 1000);
  if (wanted.owner.empty())
    // No owner given: machines of every installation in this account.
    query.filter("tag-key", "lockstep:owner");
  else
    query.filter("tag:lockstep:owner", wanted.owner);
  if (!wanted.intent.empty()) query.filter("tag:lockstep:intent", wanted.intent);
  return query;
}

Asked<void> terminate(Web& web, Api& api, const std::string& region,
                      const std::vector<std::string>& ids) {
  Query query("TerminateInstances");
  query.list("InstanceId", ids);
  ApiCall call = ApiCall::of(query, region);
  call.patience = std::chrono::minutes(1);
  call.silence = std::chrono::seconds(20);
  const auto answer = api.ask(web, call);
  if (answer) return {};
  return tl::make_unexpected(answer.error());
}

// If one machine no longer exists, AWS refuses the whole call. Then terminate each machine by a
// separate call. A missing machine counts as terminated.
Asked<void> terminate_each(Web& web, Api& api, const std::string& region,
                           const std::vector<std::string>& ids) {
  Asked<void> all = terminate(web, api, region, ids);
  if (all || all.error().code != "InvalidInstanceID.NotFound") return all;
  all = {};
  if (ids.size() == 1) return all;
  for (const std::string& id : ids)
    if (auto one = terminate_each(web, api, region, {id}); !one) all = std::move(one);
  return all;
}

}  // namespace

Result<Listing> list_machines(Web& web, Api& api, const ListQuery& query) {
  if (const auto ready = api.ready(web); !ready) return tl::make_unexpected(ready.error().error());
  std::vector<std::string> places = query.regions;
  if (places.empty()) {
    // A list of regions from the last hour is fresh enough: a launch asks anew. Without an answer
    // use the list of the last day.
    auto all = open_regions(web, api, kHourMs);
    if (!all) all = open_regions(web, api, kDayMs);
    if (!all) return tl::make_unexpected(all.error().error());
    places = std::move(*all);
  }
  const Query asked = listing_query(query);
  std::vector<Asked<std::vector<Xml>>> answers(places.size());
  for_all_at_once(web, places.size(), [&](Web& own, std::size_t i) {
    answers[i] = api.ask_pages(own, asked, places[i], "reservationSet");
  });
  Listing listing;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!answers[i]) {
      // A silent region must not look like a region without machines.
      listing.unheard.push_back(region_silence(web, api, places[i], answers[i].error()));
      continue;
    }
    for (Machine& machine : machines_of(*answers[i], places[i]))
      listing.machines.push_back(std::move(machine));
  }
  return listing;
}

Status end_machines(Web& web, Api& api, const std::vector<Machine>& machines) {
  if (machines.empty()) return {};
  if (const auto ready = api.ready(web); !ready) return tl::make_unexpected(ready.error().error());
  struct Part {
    std::string region;
    std::vector<std::string> ids;
  };
  std::vector<Part> parts;
  for (const Machine& machine : machines) {
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& each) {
      return each.region == machine.region && each.ids.size() < kMostAtOnce;
    });
    // Parts of at most 100 machines: an unknown machine in a call spoils only its own part.
    if (part == parts.end()) part = parts.insert(part, {machine.region, {}});
    part->ids.push_back(machine.id);
  }
  std::vector<Asked<void>> answers(parts.size());
  for_all_at_once(web, parts.size(), [&](Web& own, std::size_t i) {
    answers[i] = terminate_each(own, api, parts[i].region, parts[i].ids);
  });
  for (const Asked<void>& answer : answers)
    if (!answer) return tl::make_unexpected(answer.error().error());
  return {};
}

}  // namespace lockstep::cloud::aws
