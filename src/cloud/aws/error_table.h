// A table of AWS's error codes and what each means, and a reader for AWS's three error formats.
// Pure.
#pragma once

#include "cloud/provider.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::aws {

enum class Meaning {
  next_zone,
  next_region,
  keys,         // the keys do not work: this provider is out
  keys_here,    // means `keys`, unless the keys work in other regions
  ours,         // a wrong value: refused anywhere
  again,        // a passing fault: repeat the call with growing pauses
  soon,         // a new object is not visible everywhere yet: repeat in a second
  not_allowed,  // the keys work but lack the right
  no_spot,      // the account has no role for spot yet, and the keys may not create it
  unknown,
};

// Returns a code's meaning. status: HTTP's, for codes without a row.
Meaning meaning_of(int status, std::string_view code);
Refusal refusal_of(Meaning meaning, bool keys_work_elsewhere);

// Returns what to do about Meaning::no_spot.
std::string_view spot_role_hint();

// Returns whether a wrong clock may be the cause.
bool blames_clock(std::string_view code);

struct ErrorWords {
  std::string code;
  std::string message;  // printable, one line, without the encoded part of a refusal
};

// Reads any body. The code is empty if the body is not AWS's, for example a proxy's page.
ErrorWords parse_error(std::string_view body);

// Returns zones that a message names as having capacity: "... or choosing us-east-1b, us-east-1d."
std::vector<std::string> zones_named(std::string_view message, std::string_view region);

}  // namespace lockstep::cloud::aws
