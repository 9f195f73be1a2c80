// Which quota of EC2's a type of machine counts against. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cloud::aws {

// "" where sources differ on it.
std::string_view quota_code(std::string_view type, bool spot);
std::string quota_link(std::string_view region, std::string_view code);

}  // namespace lockstep::cloud::aws
