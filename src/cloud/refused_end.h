// Messages about machines that a provider refuses to terminate: each hour until the cause is
// removed costs money. Pure.
#pragma once

#include "base/error.h"
#include "cloud/money.h"
#include "cloud/provider.h"

#include <string>
#include <vector>

namespace lockstep::cloud {

// Returns whether a retry cannot help: the keys are revoked or expired, or lack the right.
bool is_lasting_refusal(const Error& error);

// Returns where a person can terminate the machine: "https://... , terminate i-1".
std::string console_words(const Traits& traits, const Machine& machine);

// Returns a line with the machines, their rate, the provider's reason, and the page on which a
// person can terminate the machines. Empty for an empty list.
std::string refused_end_words(const std::vector<Machine>& machines, Micros per_hour,
                              const Traits& traits, const Error& why);

}  // namespace lockstep::cloud
