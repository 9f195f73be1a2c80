#include "cloud/machine_table.h"

#include "cloud/gpu.h"
#include "cloud/time_text.h"
#include "codec/json.h"
#include "codec/json_members.h"

#include <cmath>

namespace lockstep::cloud {
namespace {

using codec::integer_member;
using codec::text_member;

// Parses machines.json, which is compiled into the binary, at first use.
const nlohmann::json& parsed_machines() {
  static const nlohmann::json parsed = codec::parse_json(machines_json());
  return parsed;
}

std::optional<Micros> usd_member(const nlohmann::json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  // Prices in the file are decimal dollars, so round to whole millionths.
  return std::llround(found->get<double>() * static_cast<double>(kDollar));
}

MachineType type_of_row(const nlohmann::json& row) {
  return {.type = text_member(row, "type"),
          .accelerator = text_member(row, "accelerator"),
          .gpu = text_member(row, "gpu"),
          .gpus = static_cast<int>(integer_member(row, "gpus")),
          .vcpus = static_cast<int>(integer_member(row, "vcpus")),
          .memory_gb = static_cast<int>(integer_member(row, "memory_gb")),
          .on_demand = usd_member(row, "usd"),
          .spot = usd_member(row, "spot"),
          .why = text_member(row, "why")};
}

std::vector<MachineTable> read_tables() {
  std::vector<MachineTable> tables;
  for (const auto& one : parsed_machines()["tables"]) {
    MachineTable table{.provider = text_member(one, "provider"),
                       .date = text_member(one, "date"),
                       .region = text_member(one, "region"),
                       .types = {}};
    table.date_ms = parse_iso_time(table.date + "T00:00:00Z").value_or(0);
    for (const auto& row : one["types"])
      table.types.push_back(type_of_row(row));
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<Gpu> read_gpus() {
  std::vector<Gpu> gpus;
  for (const auto& row : parsed_machines()["gpus"]) {
    Gpu gpu{.name = text_member(row, "name"),
            .family = text_member(row, "family"),
            .memory_gb = static_cast<int>(integer_member(row, "memory_gb")),
            .aliases = codec::texts_member(row, "aliases")};
    if (const auto arch = text_member(row, "arch"); !arch.empty()) gpu.arch = arch;
    if (const auto open = row.find("open_module"); open != row.end())
      gpu.open_kernel_module = open->get<bool>();
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace

const std::vector<MachineTable>& machine_tables() {
  static const std::vector<MachineTable> tables = read_tables();
  return tables;
}

const MachineTable* machine_table(std::string_view provider) {
  for (const MachineTable& table : machine_tables())
    if (table.provider == provider) return &table;
  return nullptr;
}

const MachineType* plain_machine(std::string_view provider) {
  if (const MachineTable* table = machine_table(provider))
    for (const MachineType& type : table->types)
      if (type.gpus == 0) return &type;
  return nullptr;
}

const std::vector<Gpu>& gpu_table() {
  static const std::vector<Gpu> gpus = read_gpus();
  return gpus;
}

}  // namespace lockstep::cloud
