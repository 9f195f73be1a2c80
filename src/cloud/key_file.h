// Where a provider's one API key is looked for: a variable, then a file with a line "name = value".
#pragma once

#include "cloud/provider.h"

#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud {

struct ApiKey {
  std::string key;
  std::string where;     // "LAMBDA_API_KEY", "~/.lambda_cloud/lambda_keys"
  bool exposed = false;  // others may read the file
};

struct KeyPlaces {
  std::string_view variable;
  std::string_view file;                    // below the home folder: ".runpod/config.toml"
  std::span<const std::string_view> names;  // in the file, in small letters
  std::string_view advice;                  // how to come by one
};

// Whether others may read a file with keys; they are warned of.
bool is_exposed(const std::string& path);

// not_found: it is in neither place. No error shows a key.
Result<ApiKey> find_api_key(const Ground& ground, const KeyPlaces& places);

}  // namespace lockstep::cloud
