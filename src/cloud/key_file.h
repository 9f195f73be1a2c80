// Finds the API key of a provider without other credentials: in a variable, then in a file with a
// line "name = value".
#pragma once

#include "cloud/provider.h"

#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud {

struct ApiKey {
  std::string key;
  std::string where;     // "LAMBDA_API_KEY", "~/.lambda_cloud/lambda_keys"
  bool exposed = false;  // other users may read the file
};

struct KeyPlaces {
  std::string_view variable;
  std::string_view file;                    // below the home folder: ".x/keys"
  std::span<const std::string_view> names;  // in the file, in small letters
  std::string_view advice;                  // how to get a key
};

// Returns whether other users may read a file of keys, and logs a warning if so.
bool is_exposed(const std::string& path);

// Returns the key. Errc::not_found: neither place has a key. No error shows a key.
Result<ApiKey> find_api_key(const Ground& ground, const KeyPlaces& places);

}  // namespace lockstep::cloud
