// The parameters of a launch, in the order of AWS's own libraries. Pure.
#pragma once

#include "cloud/aws/answers.h"
#include "cloud/aws/query.h"
#include "cloud/provider.h"

#include <string>

namespace lockstep::cloud::aws {

inline constexpr std::size_t kMostUserData = 16384;  // bytes, before base64

struct LaunchPlace {
  Image image;
  std::string subnet = {};  // "": a trial, which does not depend on the place
  std::string group = {};
};

// Makes the token of intent and attempt. The same token in another zone would launch again, so each
// zone is an attempt of its own.
std::string launch_token(const LaunchSpec& spec);
// Makes the call. token "": a trial (DryRun), which only tests whether a launch is allowed.
Query launch_query(const LaunchSpec& spec, const LaunchPlace& place, const std::string& token);

}  // namespace lockstep::cloud::aws
