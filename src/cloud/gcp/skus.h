// Reads Google's price list and sums up machines. Google sells a machine in parts (vCPUs, memory,
// GPUs, local disks), each at a price of its own in each region. Pure.
#pragma once

#include "cloud/money.h"
#include "codec/json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

// Billionths of a dollar: per hour of a vCPU, GB or GPU; for disks per GB and month.
using Nanos = std::int64_t;

class UnitPrices {
 public:
  // Adds one page of the list. Skips SKUs for anything but parts of rentable machines.
  void add_page(const nlohmann::json& page);
  std::optional<Nanos> find(std::string_view part, std::string_view region, bool spot) const;
  bool has_part(std::string_view part) const;  // in any region
  bool empty() const { return prices_.empty(); }

  // Returns the prices as a text to keep, one line for each price.
  std::string text() const;
  static UnitPrices parse(std::string_view text);

 private:
  void add_sku(const nlohmann::json& sku);

  std::map<std::string, Nanos> prices_;  // by "core:a2 us-central1 spot"
};

// Returns the part that a description prices: "core:n1", "ram:a3plus", "gpu:nvidia-l4", "ssd",
// "pd-balanced", "hyperdisk-balanced". "": a part that we do not rent. Sets `spot` if the
// description is of spot: some SKUs of spot have the usage type OnDemand.
std::string part_of_description(std::string_view description, bool& spot);

struct MachineParts {
  std::string type;  // of the machine, without an accelerator
  int vcpus = 0;
  std::int64_t memory_mb = 0;
  std::string accelerator;
  int gpus = 0;
};

struct MachinePrice {
  Micros machine = 0;
  Micros local_ssd = 0;
};

// Returns the price of an hour. nullopt: the price of a part is missing.
std::optional<MachinePrice> price_of(const UnitPrices& prices, const MachineParts& parts,
                                     std::string_view region, bool spot);
int local_ssd_gb(const MachineParts& parts);

}  // namespace lockstep::cloud::gcp
