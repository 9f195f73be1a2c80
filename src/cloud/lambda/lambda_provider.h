// The class behind lambda.h: calls, rate limit, and known facts of the account.
#pragma once

#include "cloud/json_api.h"
#include "cloud/key_file.h"
#include "cloud/lambda/lambda_pacer.h"
#include "cloud/lambda/lambda_requests.h"
#include "cloud/provider.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::lambda {

// Targets of calls that several files make.
inline constexpr std::string_view kInstances = "/api/v1/instances";
inline constexpr std::string_view kKeys = "/api/v1/ssh-keys";
inline constexpr std::string_view kRulesets = "/api/v1/firewall-rulesets";
// A launch waits at most kLaunchPatience for a turn, and as long again for retries (kLaunchWait).
// The answer may take kLaunchDeadline. The launch may still take effect afterwards.
inline constexpr std::chrono::milliseconds kLaunchPatience{45'000};
inline constexpr std::chrono::milliseconds kLaunchWait = 2 * kLaunchPatience;
inline constexpr std::chrono::milliseconds kLaunchDeadline{60'000};
inline constexpr std::chrono::milliseconds kSettled{60'000};  // later, a missing machine is absent

class LambdaProvider : public Provider {
 public:
  explicit LambdaProvider(Ground ground);

  const Traits& traits() const override;
  Status keys() override;
  Result<std::string> account(Web& web) override;
  Catalog offers(Web& web, const OfferQuery& query) override;
  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) override;
  LaunchOutcome launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) override;
  LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                        std::int64_t asked_ms) override;
  Result<Listing> list(Web& web, const ListQuery& query) override;
  Status end(Web& web, const std::vector<Machine>& machines) override;
  Status allow(Web& web, const std::string& region, const std::string& cidr) override;
  Result<bool> has_key(Web& web, const std::string& public_key) override;
  std::vector<Finding> check(Web& web) override;
  Status clean(Web& web) override;

 private:
  template <class T>
  using Prepared = tl::expected<T, LaunchOutcome>;

  Result<const JsonApi*> api();  // made at first use; fails without a key
  JsonResult ask(Web& web, JsonQuestion question);
  Result<std::vector<Machine>> machines(Web& web);
  Result<nlohmann::json> types(Web& web, bool fresh, Price& price);

  Prepared<std::string> registered_key(Web& web, const LaunchSpec& spec);
  Prepared<std::string> image(Web& web, const LaunchSpec& spec);
  Prepared<std::string> ruleset(Web& web, const std::string& region, const std::string& cidrs,
                                bool keep);

  Ground ground_;
  double pace_;
  std::mutex making_;  // guards the members below: several threads may ask
  std::optional<ApiKey> key_;
  std::optional<LambdaPacer> pacer_;
  std::optional<JsonApi> api_;
  // Ids and names of objects that prepare() found or made, by purpose.
  std::map<std::string, std::string> prepared_;
};

}  // namespace lockstep::cloud::lambda
