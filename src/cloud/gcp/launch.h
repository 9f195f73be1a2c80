// Launches a machine, or a gang in one call. Settles an unanswered launch.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/provider.h"

namespace lockstep::cloud::gcp {

LaunchCall make_call(const Api& api, const LaunchSpec& spec, const std::string& image, int disk_gb);
LaunchOutcome launch(Api& api, Web& web, const LaunchSpec& spec, const LaunchCall& call);
LaunchOutcome resolve(Api& api, Web& web, const LaunchSpec& spec, const LaunchCall& call,
                      std::int64_t asked_ms);

}  // namespace lockstep::cloud::gcp
