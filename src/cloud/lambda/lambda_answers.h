// Reads answers of Lambda's API, version 1. Any member may be missing or of another kind. Pure.
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

// Returns "data" of an answer; null where it is missing.
const nlohmann::json& data_of(const nlohmann::json& answer);

// Returns an offer for each region with capacity, or one without a region if there is none.
std::vector<Offer> offers_of(const nlohmann::json& answer, const OfferQuery& query,
                             const Price& price);
// Returns the machines with our names or tags.
std::vector<Machine> machines_of(const nlohmann::json& answer);
// Returns the newest image family of Lambda Stack for an architecture in a region. Empty: none.
// legacy: for GPUs that NVIDIA's open kernel module does not support.
std::string family_of(const nlohmann::json& answer, std::string_view region, std::string_view arch,
                      bool legacy);
// Returns the account's name for this public key. Empty: the account does not have the key.
std::string registered_name(const nlohmann::json& answer, std::string_view public_key);

struct Ruleset {
  std::string id;
  std::vector<std::string> networks = {};  // that the rules admit
  bool only_ssh = true;                    // the rules admit to port 22 only
};
std::optional<Ruleset> ruleset_of(const nlohmann::json& answer, std::string_view name,
                                  std::string_view region);

// Returns the ids of objects whose names start with `start`. The caller removes these objects.
std::vector<std::string> ids_named(const nlohmann::json& answer, std::string_view start);
std::vector<std::string> terminated_ids(const nlohmann::json& answer);

}  // namespace lockstep::cloud::lambda
