// What Lambda answers: its API, version 1. Pure. Anything may be missing or of another kind.
#pragma once

#include "cloud/json_api.h"
#include "cloud/provider.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::lambda {

ServiceWords words_of(const nlohmann::json& answer);
std::span<const RefusalRow> refusal_rows();

// "data" of an answer; null where it is missing.
const nlohmann::json& data_of(const nlohmann::json& answer);

// One for each region that has room, or one without a region where none has.
std::vector<Offer> offers_of(const nlohmann::json& answer, const OfferQuery& query,
                             const Price& price);
// Those with our names or tags.
std::vector<Machine> machines_of(const nlohmann::json& answer);
// The newest family of Lambda Stack, for that architecture in that region. legacy: for GPUs that
// the open kernel module does not drive. Empty: there is none.
std::string family_of(const nlohmann::json& answer, std::string_view region, std::string_view arch,
                      bool legacy);
// The name under which the account has this public key; empty: it has not.
std::string registered_name(const nlohmann::json& answer, std::string_view public_key);

struct Ruleset {
  std::string id;
  std::vector<std::string> networks = {};  // that it lets in
  bool only_ssh = true;                    // by port 22 alone
};
std::optional<Ruleset> ruleset_of(const nlohmann::json& answer, std::string_view name,
                                  std::string_view region);

// Ids of what carries a name that begins so: to be removed.
std::vector<std::string> ids_named(const nlohmann::json& answer, std::string_view start);
std::vector<std::string> terminated_ids(const nlohmann::json& answer);

}  // namespace lockstep::cloud::lambda
