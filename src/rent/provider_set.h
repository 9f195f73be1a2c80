// The providers of this process, with or without credentials.
#pragma once

#include "base/error.h"
#include "cloud/provider.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::rent {

class ProviderSet {
 public:
  explicit ProviderSet(std::vector<std::unique_ptr<cloud::Provider>> all) : all_(std::move(all)) {}

  // Returns the provider of that name, with or without credentials; nullptr: there is none.
  cloud::Provider* find(std::string_view name) const;
  // Like find(), but only with credentials.
  cloud::Provider* find_keyed(std::string_view name) const;
  // Returns the providers with credentials. names: only these, which must exist and have
  // credentials; empty: all.
  Result<std::vector<cloud::Provider*>> with_keys(const std::vector<std::string>& names) const;
  std::vector<cloud::Provider*> keyed() const;  // all with credentials; may be empty
  const std::vector<std::unique_ptr<cloud::Provider>>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<cloud::Provider>> all_;
};

}  // namespace lockstep::rent
