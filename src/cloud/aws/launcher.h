// From an offer to a launch: what it needs in its region, the call, and what became of it.
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
  LaunchOutcome outcome_of(const Trouble& trouble, const std::string& region) const;
  LaunchOutcome launched_before(Web& web, const LaunchCall& call, const Trouble& trouble);

  Api& api_;
  // By region and what is wanted there, so that the next zone is asked at once.
  std::map<std::string, Network> networks_;
  std::map<std::string, Image> images_;  // with which a trial went well
};

}  // namespace lockstep::cloud::aws
