// Which machine types and accelerators each zone has, and how much of them the account may have:
// pure. Filled from Google's answers, kept as text.
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
    MachineParts parts;  // of n1: without an accelerator
  };
  struct Added {
    std::string zone;
    std::string accelerator;
    int most = 0;  // on one machine
  };

  std::vector<Type> types;
  std::vector<Added> added;
  std::vector<std::string> regions;
  std::map<std::string, std::int64_t> quotas;  // "us-central1 NVIDIA_L4_GPUS"; of all: "* ..."
  std::vector<Silence> silent;

  // Pages of machineTypes.aggregatedList, acceleratorTypes.aggregatedList and regions.list, and the
  // answer of projects.get.
  void add_types(const nlohmann::json& page);
  void add_accelerators(const nlohmann::json& page);
  void add_regions(const nlohmann::json& page);
  void add_project(const nlohmann::json& project);

  // Machine types with GPUs, those that are added to n1 machines among them.
  std::vector<Type> with_gpus() const;
  // Those without.
  std::vector<Type> plain() const;
  // How many of these GPUs may be had there. nullopt: not known.
  std::optional<std::int64_t> quota(const std::string& accelerator, const std::string& region,
                                    bool spot) const;

  std::string text() const;
  static Places parse(std::string_view text);
};

}  // namespace lockstep::cloud::gcp
