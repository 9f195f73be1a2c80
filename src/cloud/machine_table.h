// The built-in table of machine types and their dated prices (machines.json): what is known of a
// provider without asking it.
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
  std::string accelerator = {};  // to be added to the machine, where the type has none of its own
  std::string gpu;               // canonical (gpu.h); "": it has none
  int gpus = 0;
  int vcpus = 0;
  int memory_gb = 0;
  std::optional<Micros> on_demand = {};  // of one machine and hour, in the table's region
  std::optional<Micros> spot = {};
  std::string why = {};  // it is not for sale on demand
};

struct MachineTable {
  std::string provider;
  std::string date;  // "2026-07-20"
  std::int64_t date_ms = 0;
  std::string region;  // whose prices they are; "": all
  std::vector<MachineType> types;
};

// nullptr: nothing is built in for this provider.
const MachineTable* machine_table(std::string_view provider);

// The machine without GPUs that tests of a provider take; nullptr: it has none.
const MachineType* plain_machine(std::string_view provider);

const std::vector<MachineTable>& machine_tables();

// All of machines.json, as JSON.
std::string_view machines_json();

}  // namespace lockstep::cloud
