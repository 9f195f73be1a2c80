// The objects of a Lambda account that a launch names: an SSH key, an image, and a set of firewall
// rules. All are free of charge.
#pragma once

#include "cloud/lambda/lambda_account.h"
#include "cloud/provider.h"

#include <map>
#include <string>

namespace lockstep::cloud::lambda {

// Finds the objects or makes them, and remembers each for later launches.
class LambdaObjects {
 public:
  template <class T>
  using Prepared = tl::expected<T, LaunchOutcome>;

  explicit LambdaObjects(LambdaAccount& account) : account_(account) {}

  // Returns the account's name for the launch's public key.
  Prepared<std::string> registered_key(Web& web, const LaunchSpec& spec);
  // Returns an image family or id. Empty: Lambda chooses its newest image.
  Prepared<std::string> image(Web& web, const LaunchSpec& spec);
  // Returns the id of the region's rules, which admit the networks `cidrs` to port 22. Empty: the
  // account's rules hold. keep: adds networks and removes none, since other clusters of the
  // installation share the rules.
  Prepared<std::string> ruleset(Web& web, const std::string& region, const std::string& cidrs,
                                bool keep);
  // Sets the region's rules to exactly these networks.
  Prepared<std::string> change_ruleset(Web& web, const std::string& region,
                                       const std::string& cidrs);
  // Forgets all remembered objects: a launch was refused because one no longer exists.
  void forget() { known_.clear(); }

  Result<bool> has_key(Web& web, const std::string& public_key);
  // Removes our keys and rules, unless a machine of this installation exists.
  Status clean(Web& web);

 private:
  LambdaAccount& account_;
  std::map<std::string, std::string> known_;  // ids and names, by purpose
};

}  // namespace lockstep::cloud::lambda
