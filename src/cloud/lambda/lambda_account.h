// Calls to one account of Lambda Cloud: the key, the rate limit, and answers that several actions
// need.
#pragma once

#include "cloud/json_api.h"
#include "cloud/key_file.h"
#include "cloud/lambda/lambda_pacer.h"
#include "cloud/provider.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::lambda {

inline constexpr std::string_view kTitle = "Lambda Cloud";
// A call waits at most this long for its turn.
inline constexpr std::chrono::milliseconds kLaunchPatience{45'000};

// Several threads may ask at the same time.
class LambdaAccount {
 public:
  explicit LambdaAccount(Ground ground);
  LambdaAccount(const LambdaAccount&) = delete;
  LambdaAccount& operator=(const LambdaAccount&) = delete;

  // Reads the key once. Errc::not_found: the error names the places searched.
  Status find_key();
  const ApiKey& key() const { return *key_; }  // call only after find_key() has succeeded
  const std::string& owner() const { return ground_.owner; }
  double pace() const { return pace_; }

  JsonResult ask(Web& web, JsonQuestion question);
  // Returns the machines with our names or tags.
  Result<std::vector<Machine>> machines(Web& web);
  // Returns the types of machines, with prices and stock. fresh: bypasses the cache. price: set to
  // the source and age of the prices.
  Result<nlohmann::json> types(Web& web, bool fresh, Price& price);

 private:
  Result<const JsonApi*> api();  // made at first use; fails without a key

  Ground ground_;
  double pace_;
  std::mutex making_;  // guards the members below
  std::optional<ApiKey> key_;
  std::optional<LambdaPacer> pacer_;
  std::optional<JsonApi> api_;
};

}  // namespace lockstep::cloud::lambda
