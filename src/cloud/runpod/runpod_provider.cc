// RunPod's account and offers; lists and terminates pods.
#include "cloud/runpod/runpod_provider.h"

#include "base/fnv.h"
#include "cloud/kept_answer.h"
#include "cloud/machine_name.h"
#include "cloud/pace.h"
#include "cloud/runpod/pod_ending.h"
#include "cloud/runpod/runpod.h"
#include "cloud/runpod/runpod_requests.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::runpod {
namespace {

constexpr std::string_view kHost = "https://api.runpod.io";
constexpr std::array<std::string_view, 2> kKeyNames = {"apikey", "api_key"};
constexpr KeyPlaces kKeyPlaces{
    .variable = "RUNPOD_API_KEY",
    .file = ".runpod/config.toml",
    .names = kKeyNames,
    .advice =
        "make one with the right to read and write at "
        "https://console.runpod.io/user/settings and set RUNPOD_API_KEY"};
constexpr std::int64_t kStockAgeMs = 30'000;
// A deleted pod counts as gone once a list that is this much later lacks the pod.
constexpr std::int64_t kSureAfterMs = 1000;
constexpr std::chrono::milliseconds kOfferPatience{8000};

constexpr Traits kTraits{
    .name = "runpod",
    .title = "RunPod",
    .has_spot = true,
    .has_sudo = false,
    .container = true,
    .machine_ending = kPodEnding,
    .port_rule = PortRule::none,
    .fixed_end = true,  // no call that RunPod documents changes a pod's terminateAfter
    .minimum_billing_s = 1,
    .notice_s = 5,
    .keys_hint = "RUNPOD_API_KEY, or apikey = \"...\" in ~/.runpod/config.toml",
    .console = "https://console.runpod.io/pods , terminate {id}",
    .fake_hint =
        "RunPod: tested against our own fake only, after the published REST API v2 and "
        "users' code for GraphQL"};

}  // namespace

RunpodProvider::RunpodProvider(Ground ground)
    : ground_(std::move(ground)), pace_(pace_of(ground_)) {}

const Traits& RunpodProvider::traits() const {
  return kTraits;
}

Status RunpodProvider::keys() {
  // Several threads may ask at once: read the key once.
  const std::lock_guard lock(making_);
  if (key_) return {};
  LOCKSTEP_TRY_ASSIGN(key_, find_api_key(ground_, kKeyPlaces));
  return {};
}

Result<const JsonApi*> RunpodProvider::api() {
  LOCKSTEP_TRY(keys());
  const std::lock_guard lock(making_);
  if (api_) return &*api_;
  api_.emplace(JsonApi::Settings{.title = std::string(kTraits.title),
                                 .base = base_of(ground_, "LOCKSTEP_RUNPOD_ENDPOINT", kHost),
                                 .secret = key_->key,
                                 .pace = pace_,
                                 .words = words_of});
  return &*api_;
}

JsonResult RunpodProvider::ask(Web& web, const JsonQuestion& question) {
  const auto service = api();
  if (!service) return tl::make_unexpected(without_answer(service.error(), false));
  return (*service)->ask(web, question);
}

Result<nlohmann::json> RunpodProvider::ask_graphql(Web& web, const std::string& body,
                                                   const char* shown) {
  auto answer = ask(web, {.method = "POST",
                          .target = kGraphql,
                          .body = body,
                          .shown = shown,
                          .patience = kOfferPatience});
  if (!answer) return Failure(answer.error().error());
  // GraphQL reports errors with a status of success.
  if (const auto refusal = graphql_refusal(*answer))
    return Failure((*api())->refused(shown, *refusal));
  return std::move(*answer);
}

Result<Account> RunpodProvider::myself(Web& web) {
  LOCKSTEP_TRY_ASSIGN(const auto answer, ask_graphql(web, account_body(), "account"));
  return account_of(answer);
}

Result<std::string> RunpodProvider::account(Web& web) {
  LOCKSTEP_TRY_ASSIGN(const Account account, myself(web));
  return fmt::format("account {}, {}", account.id, account.email);
}

Result<std::vector<Machine>> RunpodProvider::machines(Web& web) {
  const auto answer = ask(web, {.target = kPods, .shown = "list pods"});
  if (!answer) return Failure(answer.error().error());
  // An unreadable list must not look like an empty list: machines would seem gone.
  if (const auto pods = answer->find("pods"); pods == answer->end() || !pods->is_array())
    return fail(Errc::corrupt, "RunPod: list pods: the answer has no list");
  return machines_of(*answer, web.now_ms());
}

Result<nlohmann::json> RunpodProvider::kept(Web& web, const JsonQuestion& question,
                                            std::string_view name, bool fresh, Price& price) {
  LOCKSTEP_TRY(api());
  const std::string file = fmt::format("runpod-{}-{:016x}", name, fnv1a(key_->key));
  if (!fresh)
    if (const auto kept = kept_answer(ground_.cache, file, web.now_ms(), kStockAgeMs)) {
      auto parsed = codec::parse_json(kept->text, {.bytes = 16U << 20});
      price = {.source = Price::Source::cached, .as_of_ms = kept->as_of_ms};
      if (parsed.is_object()) return parsed;
    }
  auto answer = ask(web, question);
  if (!answer) return Failure(answer.error().error());
  price = {.source = Price::Source::live, .as_of_ms = web.now_ms()};
  // Never keep a refusal as an answer.
  if (const auto refusal = graphql_refusal(*answer))
    return Failure((*api())->refused(question.shown, *refusal));
  keep_answer(ground_.cache, file, codec::print_json(*answer), web.now_ms());
  return std::move(*answer);
}

Result<nlohmann::json> RunpodProvider::kinds_of(Web& web, int gpus, bool fresh, Price& price) {
  return kept(web,
              {.target = catalog_target(gpus), .shown = "list GPUs", .patience = kOfferPatience},
              fmt::format("gpus-{}", gpus), fresh, price);
}

Catalog RunpodProvider::offers(Web& web, const OfferQuery& query) {
  Catalog catalog;
  const auto silent = [&](const Error& error) {
    catalog.silent.push_back({.provider = "runpod",
                              .why = error.message,
                              .no_keys = error.code == Errc::not_found && !key_});
    return std::move(catalog);
  };
  if (const auto ready = api(); !ready) return silent(ready.error());
  // RunPod gives stock and bids for a single number of GPUs.
  const int count = query.gpu.kinds.empty() ? 1 : query.gpu.count;
  Price price;
  Price bid_price;
  Result<nlohmann::json> kinds;
  Result<nlohmann::json> bids;
  const auto ask_kinds = [&](Web& own) { kinds = kinds_of(own, count, query.fresh, price); };
  const auto ask_bids = [&](Web& own) {
    bids = kept(own,
                {.method = "POST",
                 .target = kGraphql,
                 .body = bids_body(count, ""),
                 .shown = "list spot prices",
                 .patience = kOfferPatience},
                fmt::format("bids-{}", count), query.fresh, bid_price);
  };
  // Prices come by REST and bids by GraphQL: ask for both at once.
  if (query.spot)
    web.at_once({ask_kinds, ask_bids});
  else
    ask_kinds(web);
  if (!kinds) return silent(kinds.error());
  if (!bids) return silent(bids.error());
  const auto least = bids_of(*bids);
  catalog.offers = offers_of(*kinds, query, query.spot ? bid_price : price, count,
                             query.spot ? &least : nullptr);
  return catalog;
}

Result<Listing> RunpodProvider::list(Web& web, const ListQuery& query) {
  LOCKSTEP_TRY_ASSIGN(auto all, machines(web));
  Listing listing;
  for (const Machine& machine : all)
    if (asked_for(query, machine)) listing.machines.push_back(machine);
  // RunPod no longer lists a deleted pod, so report such a pod as gone from here.
  for (const Machine& gone : ended_)
    if (web.now_ms() - gone.ended_ms >= kSureAfterMs && asked_for(query, gone) &&
        std::none_of(all.begin(), all.end(),
                     [&](const Machine& machine) { return machine.id == gone.id; }))
      listing.machines.push_back(gone);
  return listing;
}

Status RunpodProvider::end(Web& web, const std::vector<Machine>& machines) {
  Status all;
  for (const Machine& machine : machines) {
    const auto gone = ask(web, {.method = "DELETE",
                                .target = pod_target(machine.id),
                                .shown = "end " + machine.id,
                                .patience = std::chrono::milliseconds(60'000)});
    // 404: the pod is already gone.
    if (!gone && gone.error().status != 404) {
      if (all) all = Failure(gone.error().error());
      continue;
    }
    ended_.push_back(machine);
    ended_.back().state = Machine::State::gone;
    // RunPod deletes a pod at once, and no list tells the end of the pod. This process keeps the
    // end for its own lists.
    ended_.back().ended_ms = web.now_ms();
    // The caller's journal may lack some members of a listed machine.
    if (!read_name(ended_.back())) ended_.back().owner = ground_.owner;
  }
  return all;
}

// RunPod opens a pod's port to all addresses. Only the key decides who may log in.
Status RunpodProvider::allow(Web& /*web*/, const std::string& /*region*/,
                             const std::string& /*cidr*/) {
  return {};
}

std::vector<Finding> RunpodProvider::check(Web& web) {
  using Kind = Finding::Kind;
  std::vector<Finding> found;
  if (const Status there = keys(); !there) {
    found.push_back({Kind::bad, there.error().message, there.error().hint});
    return found;
  }
  found.push_back({Kind::good, "key in " + key_->where});
  if (key_->exposed)
    found.push_back({Kind::bad, "others may read " + key_->where, "chmod 600 " + key_->where});
  if (const auto machines = this->machines(web); machines)
    found.push_back({Kind::good, fmt::format("the key lists pods; {} of ours", machines->size())});
  else
    found.push_back({Kind::bad, machines.error().message, std::string(kKeyPlaces.advice)});
  if (const auto account = myself(web); !account)
    found.push_back({Kind::bad, account.error().message,
                     "pods are made by GraphQL, for which the key needs its right as well"});
  // RunPod terminates all pods without warning at a balance of 0.
  else if (account->balance && *account->balance < 1)
    found.push_back({Kind::bad, fmt::format("the balance is {:.2f} USD", *account->balance),
                     "add credit at https://console.runpod.io/user/billing: at 0 all pods end"});
  else
    found.push_back({Kind::good, fmt::format("account {}, {}; balance {:.2f} USD", account->id,
                                             account->email, account->balance.value_or(0))});
  found.push_back({Kind::note, "a pod's SSH port is open to all addresses; only our key gets in"});
  found.push_back({Kind::note, std::string(kTraits.fake_hint)});
  return found;
}

std::unique_ptr<Provider> make_provider(Ground ground) {
  return std::make_unique<RunpodProvider>(std::move(ground));
}

}  // namespace lockstep::cloud::runpod
