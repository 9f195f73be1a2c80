// The table of providers: a provider is a folder of cloud and a row here. No other code names them.
#pragma once

#include "cloud/provider.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::cloud::table {

struct ProviderRow {
  std::string_view name;  // the same as Traits::name
  std::unique_ptr<Provider> (*make)(Ground ground);
};
std::span<const ProviderRow> providers();

// Returns all providers, with or without credentials.
std::vector<std::unique_ptr<Provider>> make_providers(const Ground& ground);

}  // namespace lockstep::cloud::table
