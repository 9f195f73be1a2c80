#include "cloud/gcp/gcp.h"

#include "base/text.h"
#include "cloud/gcp/api.h"
#include "cloud/gcp/check.h"
#include "cloud/gcp/firewall.h"
#include "cloud/gcp/image.h"
#include "cloud/gcp/launch.h"
#include "cloud/gcp/machines.h"
#include "cloud/gcp/offers.h"
#include "cloud/gcp/requests.h"
#include "cloud/machine_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace lockstep::cloud::gcp {
namespace {

constexpr Traits kTraits = {
    .name = "gcp",
    .title = "Google Compute",
    .gang_in_one_call = true,
    .has_spot = true,
    .resends_token = true,
    .private_network = true,
    .knows_host_keys = true,
    .ending = Ending::by_itself,
    .port_rule = PortRule::of_account,
    // instances.setScheduling works on stopped instances only, and a stop would end the job.
    .fixed_end = true,
    .most_lifetime_s = kMostRun,
    .minimum_billing_s = 60,
    .notice_s = 30,
    .keys_hint =
        "GOOGLE_APPLICATION_CREDENTIALS, ~/.config/gcloud/application_default_credentials"
        ".json, or gcloud; the project from GOOGLE_CLOUD_PROJECT or gcloud",
    .console = "https://console.cloud.google.com/compute/instances , delete {id} of {zone}",
    .fake_hint =
        "tested against a fake that Google's own client (@google-cloud/compute) drives; "
        "never against Google itself",
    .file_variables = {"GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"},
};

class Gce : public Provider {
 public:
  explicit Gce(Ground ground) : ground_(std::move(ground)) {}

  const Traits& traits() const override { return kTraits; }
  Status keys() override {
    LOCKSTEP_TRY(api());
    return {};
  }
  Result<std::string> account(Web& web) override;
  Catalog offers(Web& web, const OfferQuery& query) override;
  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) override;
  LaunchOutcome launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) override;
  LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                        std::int64_t asked_ms) override;
  Result<Listing> list(Web& web, const ListQuery& query) override;
  Status end(Web& web, const std::vector<Machine>& machines) override;
  Status allow(Web& web, const std::string& region, const std::string& cidrs) override;
  Result<std::string> host_key(Web& web, const Machine& machine) override;
  std::vector<Finding> check(Web& web) override;
  Status clean(Web& web) override;

 private:
  Result<Api*> api();

  const Ground ground_;
  std::mutex mutex_;
  std::unique_ptr<Api> api_;
  // Kept from earlier launches of this command, so that an attempt in the next zone starts without
  // delay.
  std::map<std::string, Image> images_;
  std::string open_to_;
  std::vector<Machine> ended_;  // deletes that Google accepted: lists may be stale
};

Result<Api*> Gce::api() {
  // Several threads may ask at once: find the credentials once.
  const std::lock_guard lock(mutex_);
  if (!api_) {
    LOCKSTEP_TRY_ASSIGN(Credentials found, find_credentials(ground_));
    api_ = std::make_unique<Api>(std::move(found), ground_);
  }
  return api_.get();
}

LaunchOutcome without_keys(const Error& error) {
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = Refusal::provider_out,
          .code = "keys",
          .message = error.message};
}

Result<std::string> Gce::account(Web& web) {
  LOCKSTEP_TRY_ASSIGN(Api * api, this->api());
  const auto project = api->ask(web, {.target = api->path(""), .shown = "the project"});
  if (!project) return failure_of(project.error(), "the project");
  const Credentials& keys = api->credentials();
  return fmt::format("project {}, {}", keys.project,
                     keys.email.empty() ? "keys of " + keys.where : keys.email);
}

Catalog Gce::offers(Web& web, const OfferQuery& query) {
  const auto silent = [](std::string why, bool no_keys) {
    return Catalog{.offers = {},
                   .silent = {{.provider = "gcp", .why = std::move(why), .no_keys = no_keys}}};
  };
  const auto found = api();
  if (!found) return silent(found.error().message, found.error().code == Errc::not_found);
  Api& api = **found;
  Asked<Places> places;
  PriceList prices;
  // Ask for both at once, since the price list has about thirty pages.
  web.at_once({[&](Web& own) { places = ask_places(api, own, ground_, query.fresh); },
               [&](Web& own) { prices = ask_prices(api, own, ground_, query.fresh); }});
  if (!places) return silent(places.error().message, false);
  return make_offers(*places, prices, query, api.project());
}

tl::expected<LaunchCall, LaunchOutcome> Gce::prepare(Web& web, const LaunchSpec& spec) {
  const auto found = api();
  if (!found) return tl::make_unexpected(without_keys(found.error()));
  Api& api = **found;
  const auto refused = [](const ApiFailure& error) {
    LaunchOutcome outcome = outcome_of(error);
    // All zones share the image and the firewall rule, so another zone would not help.
    if (outcome.kind == LaunchOutcome::Kind::unknown)
      outcome = {.kind = LaunchOutcome::Kind::refused,
                 .refusal = Refusal::provider_out,
                 .code = "unreachable",
                 .message = std::move(outcome.message)};
    if (outcome.refusal == Refusal::unknown) outcome.refusal = Refusal::stop;
    return tl::make_unexpected(std::move(outcome));
  };
  const std::lock_guard lock(mutex_);
  const std::string key = fmt::format("{} {} {}", spec.image, spec.offer.gpu, spec.offer.arch);
  auto image = images_.find(key);
  if (image == images_.end()) {
    auto asked = find_image(api, web, spec.image, spec.offer.gpu, spec.offer.arch);
    if (!asked) return refused(asked.error());
    image = images_.emplace(key, std::move(*asked)).first;
  }
  // The rule does not depend on the zone, so set it once per list of networks.
  if (open_to_ != spec.allow_from) {
    if (const auto opened = open_also_to(api, web, spec.owner, spec.allow_from); !opened)
      return refused(opened.error());
    open_to_ = spec.allow_from;
  }
  return make_call(api, spec, image->second.path,
                   std::max({spec.disk_gb, spec.offer.min_disk_gb, image->second.disk_gb}));
}

LaunchOutcome Gce::launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) {
  const auto found = api();
  return found ? gcp::launch(**found, web, spec, call) : without_keys(found.error());
}

LaunchOutcome Gce::resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                           std::int64_t asked_ms) {
  const auto found = api();
  // Without credentials the outcome of the launch stays unknown.
  if (!found) return {.kind = LaunchOutcome::Kind::unknown, .message = found.error().message};
  return gcp::resolve(**found, web, spec, call, asked_ms);
}

Result<Listing> Gce::list(Web& web, const ListQuery& query) {
  LOCKSTEP_TRY_ASSIGN(Api * api, this->api());
  LOCKSTEP_TRY_ASSIGN(Listing listing, list_machines(*api, web, query));
  const std::lock_guard lock(mutex_);
  for (Machine& ended : ended_) {
    const bool is_listed =
        std::any_of(listing.machines.begin(), listing.machines.end(), [&](const Machine& machine) {
          return machine.id == ended.id && machine.zone == ended.zone;
        });
    if (is_listed || !asked_for(query, ended)) continue;
    // A list may be stale, so a missing machine proves nothing. The machine's own URL is exact.
    if (ended.state != Machine::State::gone && is_deleted(*api, web, ended))
      ended.state = Machine::State::gone;
    if (ended.state == Machine::State::gone) listing.machines.push_back(ended);
  }
  return listing;
}

Status Gce::end(Web& web, const std::vector<Machine>& machines) {
  LOCKSTEP_TRY_ASSIGN(Api * api, this->api());
  const auto seen = end_machines(*api, web, machines);
  const std::lock_guard lock(mutex_);
  Status all;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    if (!seen[i] && all) all = Failure(seen[i].error());
    // A machine that was not found may be too new. Leave its end to the lists.
    if (seen[i].value_or(EndSeen::not_found) == EndSeen::not_found) continue;
    std::erase_if(ended_, [&](const Machine& one) {
      return one.id == machines[i].id && one.zone == machines[i].zone;
    });
    Machine& ended = ended_.emplace_back(machines[i]);
    ended.state = *seen[i] == EndSeen::gone ? Machine::State::gone : Machine::State::ending;
    // The caller's journal may lack some members of a listed machine.
    if (ended.owner.empty()) ended.owner = ground_.owner;
  }
  return all;
}

Status Gce::allow(Web& web, const std::string& /*region*/, const std::string& cidrs) {
  LOCKSTEP_TRY_ASSIGN(Api * api, this->api());
  if (const auto opened = open_to(*api, web, ground_.owner, split(cidrs, ',')); !opened)
    return failure_of(opened.error(), "the firewall rule");
  return {};
}

Result<std::string> Gce::host_key(Web& web, const Machine& machine) {
  LOCKSTEP_TRY_ASSIGN(Api * api, this->api());
  return told_host_key(*api, web, machine);
}

std::vector<Finding> Gce::check(Web& web) {
  const auto found = api();
  if (!found) return {{Finding::Kind::bad, found.error().message, found.error().hint}};
  return check_account(**found, web, ground_);
}

Status Gce::clean(Web& web) {
  LOCKSTEP_TRY_ASSIGN(Api * api, this->api());
  if (const auto removed = remove_rule(*api, web, ground_.owner); !removed)
    return failure_of(removed.error(), "the firewall rule");
  return {};
}

}  // namespace

std::unique_ptr<Provider> make_provider(Ground ground) {
  return std::make_unique<Gce>(std::move(ground));
}

}  // namespace lockstep::cloud::gcp
