// Names of machines at providers without tags, creation times or idempotency tokens. The name
// contains everything to recognize the machine. Pure.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// The parts of ls-INTENT-OWNER-ATTEMPT-NODE-TIME: at most 64 characters of a-z0-9 and dashes. The
// time is the time of prepare().
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

// Fills in intent, owner and the like from the machine's name. Returns false for a name without our
// form.
bool read_name(Machine& machine);
// Returns whether the query includes this machine.
bool asked_for(const ListQuery& query, const Machine& machine);

}  // namespace lockstep::cloud
