// The class behind lambda.h: what each call of the interface means at Lambda.
#pragma once

#include "cloud/lambda/lambda_account.h"
#include "cloud/lambda/lambda_objects.h"
#include "cloud/provider.h"

#include <string>
#include <vector>

namespace lockstep::cloud::lambda {

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
  LambdaAccount account_;
  LambdaObjects objects_;
};

}  // namespace lockstep::cloud::lambda
