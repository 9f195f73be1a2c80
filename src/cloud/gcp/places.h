// The machine types and accelerators of each zone, and the account's quotas. Filled from Google's
// answers and kept as text. Pure.
#pragma once

#include "cloud/gcp/skus.h"
#include "cloud/provider.h"
#include "codec/json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

struct Places {
  struct Type {
    std::string zone;
    MachineParts parts;  // n1: without an accelerator
  };
  struct Added {
    std::string zone;
    std::string accelerator;
    int most = 0;  // per machine
  };

  std::vector<Type> types;
  std::vector<Added> added;
  std::vector<std::string> regions;
  std::map<std::string, std::int64_t> quotas;  // "us-central1 NVIDIA_L4_GPUS"; all regions: "* ..."
  std::vector<NoAnswer> silent;

  // Add pages of machineTypes.aggregatedList, acceleratorTypes.aggregatedList and regions.list, and
  // the answer of projects.get.
  void add_types(const nlohmann::json& page);
  void add_accelerators(const nlohmann::json& page);
  void add_regions(const nlohmann::json& page);
  void add_project(const nlohmann::json& project);

  // Returns machine types with GPUs, including n1 machines with GPUs added.
  std::vector<Type> with_gpus() const;
  // Returns machine types without GPUs.
  std::vector<Type> plain() const;
  // Returns how many of these GPUs the account may have there. nullopt: unknown.
  std::optional<std::int64_t> quota(const std::string& accelerator, const std::string& region,
                                    bool spot) const;

  std::string text() const;
  static Places parse(std::string_view text);
};

}  // namespace lockstep::cloud::gcp
