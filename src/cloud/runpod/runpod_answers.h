// What RunPod answers: REST version 2, problems as RFC 9457 has them, and GraphQL. Pure. Anything
// may be missing or of another kind.
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

// Of an answer that is no success by its status.
ServiceWords words_of(const nlohmann::json& answer);
std::span<const RefusalRow> refusal_rows();

// What GraphQL refuses comes as a success with "errors".
std::optional<ServiceWords> graphql_refusal(const nlohmann::json& answer);
// Of a launch: the id, a refusal, or neither.
LaunchOutcome launched(const nlohmann::json& answer);

struct Bid {
  Micros least = 0;      // per GPU and hour
  Micros on_demand = 0;  // 0: unknown
};
// By GPU type; only of those that have spot pods now.
std::map<std::string, Bid> bids_of(const nlohmann::json& answer);

// What the catalog has for the wish, by data center. asked: the number of GPUs that its stock is
// for. bids: of spot; nullptr: on demand.
std::vector<Offer> offers_of(const nlohmann::json& answer, const OfferQuery& query,
                             const Price& price, int asked, const std::map<std::string, Bid>* bids);

// Those with our names. What does not run in a quarter of an hour never will.
std::vector<Machine> machines_of(const nlohmann::json& answer, std::int64_t now_ms);

struct Account {
  std::string id;
  std::string email;
  std::optional<double> balance;  // USD
};
Account account_of(const nlohmann::json& answer);

}  // namespace lockstep::cloud::runpod
