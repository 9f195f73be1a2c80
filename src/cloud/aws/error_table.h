// What each of AWS's error codes means for us, as a table; and an error's envelope, of which there
// are three. Pure.
#pragma once

#include "cloud/provider.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::aws {

enum class Meaning {
  next_zone,
  next_region,
  keys,         // this provider is out
  keys_here,    // so it is, unless the keys work in other regions
  ours,         // a wrong value: it would be refused anywhere
  again,        // the same call once more, with growing pauses
  soon,         // not known yet where it was made just now: again in a second
  not_allowed,  // keys work and have not that right
  no_spot,      // the account has no role for spot yet, and these keys may not make it
  unknown,
};

// status: HTTP's, for codes that are not in the table.
Meaning meaning_of(int status, std::string_view code);
Refusal refusal_of(Meaning meaning, bool keys_work_elsewhere);

// What mends Meaning::no_spot.
std::string_view spot_role_hint();

// Whether a wrong clock could be the cause.
bool blames_clock(std::string_view code);

struct ApiError {
  std::string code;
  std::string message;  // printable, one line, without the encoded part of a refusal
};

// Of any body, also of one that is no error of AWS's (a proxy's page): then the code is empty.
ApiError parse_error(std::string_view body);

// Zones that a message names as having room: "... or choosing us-east-1b, us-east-1d."
std::vector<std::string> zones_named(std::string_view message, std::string_view region);

}  // namespace lockstep::cloud::aws
