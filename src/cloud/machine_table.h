// The built-in table of machine types and their dated prices (machines.json), for use without a
// provider's answer.
#pragma once

#include "cloud/money.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct MachineType {
  std::string type;
  std::string accelerator = {};  // GPU to add to a type without GPUs
  std::string gpu;               // canonical (gpu.h); "": none
  int gpus = 0;
  int vcpus = 0;
  int memory_gb = 0;
  std::optional<Micros> on_demand = {};  // of one machine and hour, in the table's region
  std::optional<Micros> spot = {};
  std::string why = {};  // why the type is not for sale on demand
};

struct MachineTable {
  std::string provider;
  std::string date;  // "2026-07-20"
  std::int64_t date_ms = 0;
  std::string region;  // of the prices; "": all regions
  std::vector<MachineType> types;
};

// Returns a provider's table; nullptr: none is built in.
const MachineTable* machine_table(std::string_view provider);

// Returns the type without GPUs for `lockstep cloud selftest`. nullptr: the provider has none.
const MachineType* plain_machine(std::string_view provider);

const std::vector<MachineTable>& machine_tables();

// Returns the text of machines.json.
std::string_view machines_json();

}  // namespace lockstep::cloud
