#include "cloud/gcp/check.h"

#include "base/text.h"
#include "cloud/gcp/image.h"
#include "cloud/gcp/offers.h"
#include "cloud/gcp/types.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

using Kind = Finding::Kind;

// Exactly the rights for the calls of this folder.
constexpr auto kRights = std::to_array<std::string_view>({
    "compute.acceleratorTypes.list",
    "compute.disks.create",
    "compute.firewalls.create",
    "compute.firewalls.delete",
    "compute.firewalls.get",
    "compute.firewalls.update",
    "compute.globalOperations.get",
    "compute.globalOperations.list",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.get",
    "compute.instances.getGuestAttributes",
    "compute.instances.list",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.instances.setTags",
    "compute.machineTypes.list",
    "compute.networks.get",
    "compute.networks.updatePolicy",
    "compute.projects.get",
    "compute.regions.list",
    "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp",
    "compute.zoneOperations.get",
    "compute.zoneOperations.list",
});

std::string right_names(std::string_view separator, std::string_view quote) {
  std::string text;
  for (const std::string_view right : kRights)
    text += fmt::format("{0}{1}{2}{1}", text.empty() ? "" : separator, quote, right);
  return text;
}

void say(std::vector<Finding>& found, Kind kind, std::string what, std::string hint = {}) {
  found.push_back({kind, std::move(what), std::move(hint)});
}

// Returns the commands that make a role with all rights, for an administrator.
std::string role_hint(const Api& api) {
  const std::string member =
      api.credentials().email.empty() ? "user:YOU" : "serviceAccount:" + api.credentials().email;
  return fmt::format(
      "gcloud iam roles create lockstep --project {0} --permissions {1}\n"
      "gcloud projects add-iam-policy-binding {0} --member {2} --role projects/{0}/roles/lockstep",
      api.project(), right_names(",", ""), member);
}

void check_rights(Api& api, Web& web, std::vector<Finding>& found) {
  const auto answer =
      api.ask(web, {.method = "POST",
                    .target = fmt::format("/v1/projects/{}:testIamPermissions", api.project()),
                    .body = fmt::format(R"({{"permissions":[{}]}})", right_names(",", "\"")),
                    .shown = "rights",
                    .host = ApiCall::Host::resource_manager});
  if (!answer) {
    say(found, Kind::note, "rights can't be listed: " + answer.error().message,
        "enable cloudresourcemanager.googleapis.com to have them checked");
    return;
  }
  // The answer lists the rights that the account has.
  std::string missing;
  const std::vector<std::string> held = texts_at(*answer, "permissions");
  for (const std::string_view right : kRights)
    if (std::find(held.begin(), held.end(), right) == held.end())
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", right);
  if (missing.empty())
    say(found, Kind::good, "all rights that are needed");
  else
    say(found, Kind::bad, "rights are missing: " + missing, role_hint(api));
}

void check_quotas(const Places& places, const std::string& project, std::vector<Finding>& found) {
  std::string has;
  for (const Accelerator& one : accelerators()) {
    std::int64_t most = 0;
    std::string where;
    for (const std::string& region : places.regions)
      if (const auto limit = places.quota(std::string(one.name), region, false);
          limit && *limit > most) {
        most = *limit;
        where = region;
      }
    if (most > 0) has += fmt::format("{}{} {} ({})", has.empty() ? "" : ", ", most, one.gpu, where);
  }
  if (!has.empty()) {
    say(found, Kind::good, "quotas on demand, the largest of each: " + has);
    return;
  }
  say(found, Kind::bad, "the quotas for GPUs on demand are 0, or not told",
      fmt::format("ask for GPUS_ALL_REGIONS and one GPU's own, at "
                  "https://console.cloud.google.com/iam-admin/quotas?project={}",
                  project));
}

void check_network(Api& api, Web& web, std::vector<Finding>& found) {
  const auto rule = [&](std::string_view name) {
    return api.ask(web, {.target = api.path(fmt::format("/global/firewalls/{}", name)),
                         .shown = "firewall rules"});
  };
  if (!api.ask(web, {.target = api.path("/global/networks/default"), .shown = "the network"}))
    say(found, Kind::bad, "the network 'default' is missing",
        "gcloud compute networks create default --subnet-mode auto");
  // Google's default network comes with this rule.
  if (rule("default-allow-ssh"))
    say(found, Kind::note, "the rule default-allow-ssh opens port 22 of all machines to everybody",
        "Lockstep's own rule opens it to your address alone: gcloud compute firewall-rules "
        "delete default-allow-ssh");
  if (!rule("default-allow-internal"))
    say(found, Kind::note,
        "no rule default-allow-internal: machines of a gang may not reach each other",
        "gcloud compute firewall-rules create default-allow-internal --network "
        "default --source-ranges 10.128.0.0/9 --allow tcp,udp,icmp");
}

}  // namespace

std::vector<Finding> check_account(Api& api, Web& web, const Ground& ground) {
  std::vector<Finding> found;
  const Credentials& keys = api.credentials();
  say(found, Kind::good, fmt::format("keys in {}, project {}", keys.where, keys.project));
  if (keys.exposed)
    say(found, Kind::note, fmt::format("{} can be read by others", keys.where),
        fmt::format("chmod 600 {}", shell_quote(keys.where)));
  // Ask afresh: kept lists would hide rights or an API that were taken away since.
  const auto places = ask_places(api, web, ground, true);
  if (!places) {
    say(found, Kind::bad, places.error().message,
        meaning_of(places.error()) == Refusal::provider_out ? role_hint(api) : "");
    return found;
  }
  check_rights(api, web, found);
  check_quotas(*places, keys.project, found);
  check_network(api, web, found);
  // Check an image for each kernel module of NVIDIA: the open module does not support V100 GPUs.
  for (const char* gpu : {"L4", "V100-16GB"}) {
    const auto image = find_image(api, web, "", gpu, "x86_64");
    if (image)
      say(found, Kind::good, fmt::format("image for {}: {}", gpu, image->path));
    else
      say(found, Kind::bad, fmt::format("no image for {}: {}", gpu, image.error().message));
  }
  // A kept price list will do: reading thirty pages takes long.
  const PriceList prices = ask_prices(api, web, ground, false);
  if (prices.trouble.empty())
    say(found, Kind::good, "the price list can be read");
  else
    say(found, Kind::note, "built-in or old prices: " + prices.trouble,
        "enable cloudbilling.googleapis.com for today's");
  return found;
}

}  // namespace lockstep::cloud::gcp
