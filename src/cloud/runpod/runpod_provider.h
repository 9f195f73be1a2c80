// The class behind runpod.h: calls, offers, and pods.
#pragma once

#include "cloud/json_api.h"
#include "cloud/key_file.h"
#include "cloud/provider.h"
#include "cloud/runpod/runpod_answers.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cloud::runpod {

// An unanswered launch may still take effect after these times.
inline constexpr std::chrono::milliseconds kLaunchPatience{45'000};
inline constexpr std::chrono::milliseconds kLaunchDeadline{60'000};
inline constexpr std::chrono::milliseconds kSettled{60'000};  // after both, before absence counts

class RunpodProvider : public Provider {
 public:
  explicit RunpodProvider(Ground ground);

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
  std::vector<Finding> check(Web& web) override;

 private:
  Result<const JsonApi*> api();  // made at first use; fails without a key
  JsonResult ask(Web& web, const JsonQuestion& question);
  Result<nlohmann::json> ask_graphql(Web& web, const std::string& body, const char* shown);
  Result<Account> myself(Web& web);
  Result<std::vector<Machine>> machines(Web& web);
  // Returns the answer kept under this name if it is at most half a minute old. Otherwise asks.
  Result<nlohmann::json> kept(Web& web, const JsonQuestion& question, std::string_view name,
                              bool fresh, Price& price);
  Result<nlohmann::json> kinds_of(Web& web, int gpus, bool fresh, Price& price);
  std::optional<LaunchOutcome> price_raised_now(Web& web, const LaunchSpec& spec);
  tl::expected<Micros, LaunchOutcome> bid(Web& web, const LaunchSpec& spec);

  Ground ground_;
  double pace_;
  std::mutex making_;  // guards the next two: several threads may ask
  std::optional<ApiKey> key_;
  std::optional<JsonApi> api_;
  // Pods whose delete RunPod has confirmed. A pod is gone once no list has the pod.
  std::vector<Machine> ended_;
};

}  // namespace lockstep::cloud::runpod
