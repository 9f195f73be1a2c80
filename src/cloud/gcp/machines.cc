#include "cloud/gcp/machines.h"

#include "base/id.h"
#include "base/text.h"
#include "cloud/gcp/requests.h"
#include "cloud/gcp/values.h"
#include "cloud/time_text.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

constexpr int kMostListPages = 200;
constexpr std::size_t kAtOnce = 16;
constexpr std::chrono::milliseconds kEndPatience{60'000};
// Wait only this long. After that the list shows when the machine is gone.
constexpr std::chrono::milliseconds kWaitForEnd{10'000};

struct StateRow {
  std::string_view status;
  Machine::State state;
};

constexpr std::array kStates = {
    StateRow{"PROVISIONING", Machine::State::pending},
    StateRow{"STAGING", Machine::State::pending},
    StateRow{"PENDING", Machine::State::pending},
    StateRow{"RUNNING", Machine::State::running},
    StateRow{"REPAIRING", Machine::State::unhealthy},
    StateRow{"STOPPING", Machine::State::ending},
    StateRow{"PENDING_STOP", Machine::State::ending},
    StateRow{"SUSPENDING", Machine::State::ending},
    StateRow{"DEPROVISIONING", Machine::State::ending},
    StateRow{"TERMINATED", Machine::State::stopped},  // its disk is still billed
    StateRow{"SUSPENDED", Machine::State::stopped},
};

Machine::State state_of(const std::string& status) {
  for (const StateRow& row : kStates)
    if (row.status == status) return row.state;
  return Machine::State::pending;
}

std::string short_text(const nlohmann::json& value, std::string_view path) {
  return printable(text_at(value, path), 80);
}

// Returns the name at the end of a URL.
std::string name_at(const nlohmann::json& value, std::string_view path) {
  return printable(last_part(text_at(value, path)), 80);
}

bool in_regions(const ListQuery& query, const std::string& zone) {
  return query.regions.empty() || std::find(query.regions.begin(), query.regions.end(),
                                            region_of(zone)) != query.regions.end();
}

Machine& listed(Listing& listing, const std::string& id, const std::string& zone) {
  for (Machine& machine : listing.machines)
    if (machine.id == id && machine.zone == zone) return machine;
  return listing.machines.emplace_back(Machine{.id = id,
                                               .name = id,
                                               .region = region_of(zone),
                                               .zone = zone,
                                               .state = Machine::State::gone,
                                               .node = node_of_name(id)});
}

// Adds preempted machines. Google deletes a preempted spot machine, and only the list of operations
// keeps the reason. If that list cannot be read, the reason stays unknown.
void add_taken(Api& api, Web& web, const ListQuery& query, Listing& listing) {
  constexpr std::string_view kTaken = "compute.instances.preempted";
  const std::string start = fmt::format("ls-{}-", label_of(query.intent));
  (void)api.ask_pages(
      web,
      {.target = api.path(
           fmt::format("/aggregated/operations?filter={}&maxResults=500&returnPartialSuccess=true",
                       codec::percent_code(fmt::format("operationType = \"{}\"", kTaken)))),
       .shown = "what Google has taken",
       .patience = std::chrono::seconds(2)},
      10, [&](const nlohmann::json& page) {
        for (const auto& [zone, operation] : items_in_zones(page, "operations")) {
          const std::string id = name_at(*operation, "targetLink");
          if (text_at(*operation, "operationType") != kTaken || !id.starts_with(start) ||
              !in_regions(query, zone))
            continue;
          Machine& machine = listed(listing, id, zone);
          machine.taken = true;
          machine.why = "preempted";
          machine.ended_ms = parse_iso_time(text_at(*operation, "endTime")).value_or(0);
          machine.intent = query.intent;
          machine.owner = query.owner;
        }
        return true;
      });
}

std::string path_of(const Api& api, const Machine& machine) {
  return api.path(fmt::format("/zones/{}/instances/{}", machine.zone, machine.id));
}

Result<EndSeen> end_one(Api& api, Web& web, const Machine& machine) {
  const std::string path = path_of(api, machine);
  const std::string shown = "the end of " + machine.id;
  // Each delete has a requestId of its own: a later machine in the same zone may have the same
  // name.
  ApiAnswer operation =
      api.ask(web, {.method = "DELETE",
                    .target = fmt::format("{}?requestId={}", path, random_uuid4()),
                    .shown = shown,
                    .patience = kEndPatience});
  if (!operation) {
    if (operation.error().status == 404) return EndSeen::not_found;
    return failure_of(operation.error(), shown);
  }
  const auto done = api.wait(web, std::move(*operation), kWaitForEnd);
  if (done) return EndSeen::gone;
  if (done.error().kind == ApiFailure::Kind::unanswered || done.error().status == 404 ||
      done.error().code == "RESOURCE_NOT_FOUND")
    return EndSeen::accepted;
  return failure_of(done.error(), shown);
}

}  // namespace

Machine read_machine(const nlohmann::json& instance, const std::string& zone) {
  Machine machine{.id = short_text(instance, "name"), .region = region_of(zone), .zone = zone};
  machine.name = machine.id;
  machine.type = name_at(instance, "machineType");
  if (const auto added = name_at(instance, "guestAccelerators/0/acceleratorType");
      !added.empty() && machine.type.starts_with("n1-"))
    machine.type += "+" + added;
  machine.state = state_of(text_at(instance, "status"));
  machine.address = short_text(instance, "networkInterfaces/0/accessConfigs/0/natIP");
  machine.private_address = short_text(instance, "networkInterfaces/0/networkIP");
  machine.user = kUser;
  machine.launched_ms = parse_iso_time(text_at(instance, "creationTimestamp")).value_or(0);
  machine.why = short_text(instance, "statusMessage");
  machine.intent = short_text(instance, "labels/lockstep-intent");
  machine.owner = short_text(instance, "labels/lockstep-owner");
  machine.cluster = short_text(instance, "labels/lockstep-cluster");
  machine.ends_ms = parse_time_label(text_at(instance, "labels/lockstep-ends"));
  // Google terminates a machine after 120 days at most, so its limit may come first.
  const std::int64_t cap =
      parse_iso_time(text_at(instance, "resourceStatus/scheduling/terminationTimestamp"))
          .value_or(0);
  if (cap > 0 && (machine.ends_ms == 0 || cap < machine.ends_ms)) machine.ends_ms = cap;
  machine.node = node_of_name(machine.id);
  machine.token = request_id_of_name(machine.id);
  return machine;
}

Result<Listing> list_machines(Api& api, Web& web, const ListQuery& query) {
  std::string filter = "labels.lockstep-owner:*";
  if (!query.owner.empty()) filter = "labels.lockstep-owner=" + label_of(query.owner);
  if (!query.intent.empty()) filter = "labels.lockstep-intent=" + label_of(query.intent);
  Listing listing;
  bool going = false;  // a spot machine is ending
  const auto done = api.ask_pages(
      web,
      {.target = api.path(
           fmt::format("/aggregated/instances?filter={}&maxResults=500&returnPartialSuccess=true",
                       codec::percent_code(filter))),
       .shown = "the list of machines",
       .values = 2'000'000},
      kMostListPages, [&](const nlohmann::json& page) {
        for (const auto& [zone, instance] : items_in_zones(page, "instances")) {
          if (!in_regions(query, zone)) continue;
          Machine machine = read_machine(*instance, zone);
          if (machine.owner.empty() || (!query.owner.empty() && machine.owner != query.owner) ||
              (!query.intent.empty() && machine.intent != query.intent))
            continue;
          if (text_at(*instance, "scheduling/provisioningModel") == "SPOT" &&
              (machine.state == Machine::State::ending || machine.state == Machine::State::stopped))
            going = true;
          listing.machines.push_back(std::move(machine));
        }
        // An unreachable zone does not fail the list. Machines there are unknown, not gone.
        for (const std::string& zone : unheard_zones(page))
          if (in_regions(query, zone))
            listing.unheard.push_back(
                {.provider = "gcp", .region = zone, .why = "Google does not reach it"});
        return true;
      });
  if (!done) return failure_of(done.error(), "the list of machines");
  // Only a spot machine that ends, or a rental without machines, may have been preempted.
  if (!query.intent.empty() && (going || listing.machines.empty()))
    add_taken(api, web, query, listing);
  return listing;
}

Result<std::string> told_host_key(Api& api, Web& web, const Machine& machine) {
  constexpr std::string_view kType = "ssh-ed25519";
  constexpr std::size_t kMostKey = 200;
  const ApiAnswer answer = api.ask(
      web,
      {.target = api.path(fmt::format("/zones/{}/instances/{}/getGuestAttributes?queryPath={}",
                                      machine.zone, machine.id, codec::percent_code("hostkeys/"))),
       .shown = "the host keys of " + machine.id});
  // 404: the machine has not published a key yet.
  if (!answer && answer.error().status == 404) return std::string();
  if (!answer) return failure_of(answer.error(), "the host keys of " + machine.id);
  for (const nlohmann::json* item : items_at(*answer, "queryValue/items")) {
    const std::string key = text_at(*item, "value");
    // The key goes into known_hosts, so accept no blank or control character.
    const bool plain =
        std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (text_at(*item, "namespace") == "hostkeys" && text_at(*item, "key") == kType &&
        !key.empty() && key.size() <= kMostKey && plain)
      return fmt::format("{} {}", kType, key);
  }
  return std::string();
}

std::vector<Result<EndSeen>> end_machines(Api& api, Web& web,
                                          const std::vector<Machine>& machines) {
  std::vector<Result<EndSeen>> ended(machines.size());
  if (machines.size() == 1) ended[0] = end_one(api, web, machines[0]);
  // In groups: each delete waits for its operation.
  for (std::size_t from = 0; machines.size() > 1 && from < machines.size(); from += kAtOnce) {
    std::vector<std::function<void(Web&)>> jobs;
    for (std::size_t i = from; i < std::min(from + kAtOnce, machines.size()); ++i)
      jobs.push_back([&, i](Web& own) { ended[i] = end_one(api, own, machines[i]); });
    web.at_once(jobs);
  }
  return ended;
}

bool is_deleted(Api& api, Web& web, const Machine& machine) {
  const auto found = api.ask(web, {.target = path_of(api, machine),
                                   .shown = "whether " + machine.id + " is gone",
                                   .patience = std::chrono::seconds(2)});
  return !found && found.error().status == 404;
}

}  // namespace lockstep::cloud::gcp
