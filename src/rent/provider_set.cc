#include "rent/provider_set.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::rent {

cloud::Provider* ProviderSet::find(std::string_view name) const {
  for (const auto& one : all_)
    if (one->traits().name == name) return one.get();
  return nullptr;
}

cloud::Provider* ProviderSet::find_keyed(std::string_view name) const {
  cloud::Provider* one = find(name);
  return one != nullptr && one->keys() ? one : nullptr;
}

Result<std::vector<cloud::Provider*>> ProviderSet::with_keys(
    const std::vector<std::string>& names) const {
  std::vector<cloud::Provider*> found;
  for (const std::string& name : names) {
    cloud::Provider* one = find(name);
    if (one == nullptr) {
      std::vector<std::string> known;
      for (const auto& each : all_)
        known.emplace_back(each->traits().name);
      return fail(Errc::invalid_input,
                  fmt::format("no provider is called '{}'", printable(name, 40)),
                  "there are " + join(known, ", "));
    }
    if (auto keys = one->keys(); !keys) return Failure(std::move(keys).error());
    found.push_back(one);
  }
  if (!names.empty()) return found;
  found = keyed();
  if (!found.empty()) return found;
  std::string hint;
  for (const auto& one : all_)
    hint += fmt::format("{}{}: {}", hint.empty() ? "" : "; ", one->traits().name,
                        one->traits().keys_hint);
  return fail(Errc::not_found, "no provider's keys were found, so nothing can be rented", hint);
}

std::vector<cloud::Provider*> ProviderSet::keyed() const {
  std::vector<cloud::Provider*> found;
  for (const auto& one : all_)
    if (one->keys()) found.push_back(one.get());
  return found;
}

}  // namespace lockstep::rent
