// The words of a launch, in the order in which AWS's own libraries have them. Pure.
#pragma once

#include "cloud/aws/answers.h"
#include "cloud/aws/query.h"
#include "cloud/provider.h"

#include <string>

namespace lockstep::cloud::aws {

inline constexpr std::size_t kMostUserData = 16384;  // bytes, before base64

struct LaunchPlace {
  Image image;
  std::string subnet = {};  // "": in a trial, which is not about a place
  std::string group = {};
};

// Of intent and attempt: the same token in another zone would launch again.
std::string launch_token(const LaunchSpec& spec);
// token "": a trial, which only says whether it might be done.
Query launch_query(const LaunchSpec& spec, const LaunchPlace& place, const std::string& token);

}  // namespace lockstep::cloud::aws
