// Bodies of calls to Lambda's API, version 1. Pure.
#pragma once

#include "cloud/provider.h"

#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud::lambda {

inline constexpr std::string_view kLaunchTarget = "/api/v1/instance-operations/launch";
inline constexpr std::size_t kMostUserData = 1'000'000;

struct LaunchParts {
  std::string name;
  std::string key_name;
  std::string image;    // a family, or an id of 32 hex digits; empty: Lambda's own choice
  std::string ruleset;  // id; empty: the account's default rules
};

std::string launch_body(const LaunchSpec& spec, const LaunchParts& parts);
std::string key_body(std::string_view name, std::string_view public_key);
// Splits a list at its commas and drops duplicates. This machine and a guard may share an address.
std::vector<std::string> networks_of(std::string_view cidr);
// Makes the body for a set of rules, one for each network of the list `cidr`. region empty: for a
// change of an existing set.
std::string ruleset_body(std::string_view name, std::string_view region, std::string_view cidr);
std::string terminate_body(std::span<const std::string> ids);

// Return the names of the objects that prepare() makes: for an installation, and for a key.
std::string ruleset_name(std::string_view owner);
std::string key_name(std::string_view owner, std::string_view public_key);

// Returns "ssh-ed25519 AAAA..." of a public key line, without the comment at its end.
std::string_view key_without_comment(std::string_view public_key);

}  // namespace lockstep::cloud::lambda
