// Checks a Lambda account for `cloud check`, and removes the objects that prepare() made.
#include "cloud/lambda/lambda_answers.h"
#include "cloud/lambda/lambda_provider.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::lambda {

std::vector<Finding> LambdaProvider::check(Web& web) {
  using Kind = Finding::Kind;
  std::vector<Finding> found;
  if (const Status there = keys(); !there) {
    found.push_back({Kind::bad, there.error().message, there.error().hint});
    return found;
  }
  found.push_back({Kind::good, "key in " + key_->where});
  if (key_->exposed)
    found.push_back({Kind::bad, "others may read " + key_->where, "chmod 600 " + key_->where});
  Price price;
  const auto types = this->types(web, true, price);
  if (!types) {
    found.push_back({Kind::bad, types.error().message,
                     "a key has all rights of its account; make a new one at "
                     "https://cloud.lambda.ai/api-keys"});
    return found;
  }
  const auto offers = offers_of(*types, {}, price);
  const auto in_stock = std::count_if(offers.begin(), offers.end(), [](const Offer& offer) {
    return offer.stock == Stock::in_stock;
  });
  found.push_back({Kind::good, fmt::format("the key works; {} offers in stock", in_stock)});
  if (const auto machines = this->machines(web); machines)
    found.push_back({Kind::good, fmt::format("{} machines of ours", machines->size())});
  else
    found.push_back({Kind::bad, machines.error().message});
  found.push_back({Kind::note, "quotas are not told by the API"});
  found.push_back({Kind::note,
                   "a machine here can't end its own bill: a guard has to, or you with "
                   "--i-will-watch"});
  found.push_back({Kind::note,
                   "us-south-1 has no firewall of its own for a machine: the account's rules "
                   "for all hold there"});
  found.push_back({Kind::note, std::string(traits().fake_hint)});
  return found;
}

Result<bool> LambdaProvider::has_key(Web& web, const std::string& public_key) {
  const auto keys = ask(web, {.target = kKeys, .shown = "list SSH keys"});
  if (!keys) return Failure(keys.error().error());
  return !registered_name(*keys, public_key).empty();
}

// Keeps keys and rules while a machine of this installation exists.
Status LambdaProvider::clean(Web& web) {
  LOCKSTEP_TRY_ASSIGN(const auto there, machines(web));
  for (const Machine& machine : there)
    if (machine.owner == ground_.owner && machine.state != Machine::State::gone) return {};
  prepared_.clear();
  for (const std::string_view place : {kKeys, kRulesets}) {
    const auto all = ask(web, {.target = place, .shown = "list what is ours"});
    if (!all) return Failure(all.error().error());
    for (const std::string& id : ids_named(*all, ruleset_name(ground_.owner))) {
      const auto gone = ask(web, {.method = "DELETE",
                                  .target = fmt::format("{}/{}", place, id),
                                  .shown = "remove what is ours"});
      // An object may stay in use for a while, or another process has removed it. Neither is an
      // error.
      if (!gone && gone.error().errc != Errc::not_found &&
          gone.error().errc != Errc::already_exists && gone.error().errc != Errc::invalid_input)
        return Failure(gone.error().error());
    }
  }
  return {};
}

}  // namespace lockstep::cloud::lambda
