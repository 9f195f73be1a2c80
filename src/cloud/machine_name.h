// Names of machines where a provider has no tags, no creation time or no idempotency token: the
// name carries all that is needed to know the machine again. Pure.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// ls-INTENT-OWNER-ATTEMPT-NODE-TIME, at most 64 characters of a-z0-9 and dashes; the time is when
// the launch was prepared.
struct MachineName {
  std::string intent;
  std::string owner;
  int attempt = 1;
  int node = 0;
  std::int64_t created_ms = 0;

  std::string text() const;
};

MachineName name_of(const LaunchSpec& spec, std::int64_t now_ms);
std::optional<MachineName> parse_machine_name(std::string_view text);  // nullopt: not ours

// Fills in what the name says. false: not ours.
bool read_name(Machine& machine);
// Whether a question for ours is about this one.
bool asked_for(const ListQuery& query, const Machine& machine);

}  // namespace lockstep::cloud
