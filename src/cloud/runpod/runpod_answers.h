// Reads RunPod's answers: REST version 2 with errors after RFC 9457, and GraphQL. Any member may be
// missing or of another kind. Pure.
#pragma once

#include "cloud/json_api.h"
#include "cloud/provider.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::cloud::runpod {

// Reads an answer whose status is an error.
ServiceWords words_of(const nlohmann::json& answer);
std::span<const RefusalRow> refusal_rows();

// Reads a GraphQL refusal, which has a status of success and "errors"; nullopt: no refusal.
std::optional<ServiceWords> graphql_refusal(const nlohmann::json& answer);
// Reads the answer of a launch: an id, a refusal, or neither (unknown).
LaunchOutcome launched(const nlohmann::json& answer);

struct Bid {
  Micros least = 0;      // per GPU and hour
  Micros on_demand = 0;  // 0: unknown
};
// Returns bids by GPU type. Types without spot pods now are missing.
std::map<std::string, Bid> bids_of(const nlohmann::json& answer);

// Returns the offers for the wish, by data center. asked: the number of GPUs for which the catalog
// gives stock. bids: for spot offers; nullptr: on demand.
std::vector<Offer> offers_of(const nlohmann::json& answer, const OfferQuery& query,
                             const Price& price, int asked, const std::map<std::string, Bid>* bids);

// Returns the pods with our names. A pod that has not started after 15 minutes counts as unhealthy.
std::vector<Machine> machines_of(const nlohmann::json& answer, std::int64_t now_ms);

struct Account {
  std::string id;
  std::string email;
  std::optional<double> balance;  // USD
};
Account account_of(const nlohmann::json& answer);

}  // namespace lockstep::cloud::runpod
