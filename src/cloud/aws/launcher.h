// From an offer to a launch: what it needs in its region, the call, and what became of it.
#pragma once

#include "cloud/aws/image.h"
#include "cloud/aws/launch_body.h"
#include "cloud/aws/network.h"

#include <map>
#include <set>
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

  Asked<void> look_around(Web& web, const LaunchSpec& spec, const ImageWish& wish);
  Asked<void> try_dry(Web& web, const LaunchSpec& spec, const ImageWish& wish, LaunchPlace& place);
  LaunchOutcome outcome_of(const Trouble& trouble, const std::string& region) const;
  LaunchOutcome launched_before(Web& web, const LaunchCall& call, const Trouble& trouble);

  Api& api_;
  // So that the next zone of a region is asked at once.
  std::map<std::string, Network> networks_;
  std::map<ImageWish, Image> images_;
  std::set<std::string> tried_;  // regions in which a trial went well
};

}  // namespace lockstep::cloud::aws
