// The quota of EC2 that a type of machine counts against. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cloud::aws {

// Returns the quota's code; "": AWS's sources disagree.
std::string_view quota_code(std::string_view type, bool spot);
std::string quota_link(std::string_view region, std::string_view code);

}  // namespace lockstep::cloud::aws
