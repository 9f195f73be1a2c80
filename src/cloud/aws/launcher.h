// Launches an offer: finds the image and network in its region, makes the call, and settles an
// unanswered call.
#pragma once

#include "cloud/aws/image.h"
#include "cloud/aws/launch_body.h"
#include "cloud/aws/network.h"

#include <map>
#include <string>

namespace lockstep::cloud::aws {

class Launcher {
 public:
  explicit Launcher(Api& api) : api_(api) {}

  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec);
  LaunchOutcome launch(Web& web, const LaunchCall& call);
  LaunchOutcome resolve(Web& web, const LaunchCall& call, std::int64_t asked_ms);

 private:
  using Refused = tl::unexpected<LaunchOutcome>;

  Asked<Network> ready_network(Web& web, const LaunchSpec& spec);
  Asked<Image> ready_image(Web& web, const LaunchSpec& spec);
  LaunchOutcome outcome_of(const ApiFailure& trouble, const std::string& region) const;
  LaunchOutcome launched_before(Web& web, const LaunchCall& call, const ApiFailure& trouble);

  Api& api_;
  // Kept, so that an attempt in the next zone of a region starts without delay. By region and by
  // wish.
  std::map<std::string, Network> networks_;
  std::map<std::string, Image> images_;  // images that passed a trial launch
};

}  // namespace lockstep::cloud::aws
