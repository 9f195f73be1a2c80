#include "cli/meant.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

constexpr std::string_view kPrefix = "PET_";

// Names from accelerate, deepspeed, mpirun, srun and torch.multiprocessing.
struct Elsewhere {
  std::string_view typed;
  std::string_view here;
};
constexpr Elsewhere kElsewhere[] = {
    {"nprocs", "nproc-per-node"},
    {"np", "nproc-per-node"},
    {"n", "nproc-per-node"},
    {"num-procs", "nproc-per-node"},
    {"num-processes", "nproc-per-node"},
    {"num-workers", "nproc-per-node"},
    {"num-gpus", "nproc-per-node"},
    {"ngpus", "nproc-per-node"},
    {"gpus", "nproc-per-node"},
    {"gpus-per-node", "nproc-per-node"},
    {"ntasks", "nproc-per-node"},
    {"ntasks-per-node", "nproc-per-node"},
    {"procs-per-node", "nproc-per-node"},
    {"processes-per-node", "nproc-per-node"},
    {"workers", "nproc-per-node"},
    {"nodes", "nnodes"},
    {"num-nodes", "nnodes"},
    {"num-machines", "nnodes"},
    {"machine-rank", "node-rank"},
    {"group-rank", "node-rank"},
    {"master-ip", "master-addr"},
    {"main-process-ip", "master-addr"},
    {"main-process-port", "master-port"},
    {"backend", "rdzv-backend"},
    {"endpoint", "rdzv-endpoint"},
    {"rendezvous-backend", "rdzv-backend"},
    {"rendezvous-endpoint", "rdzv-endpoint"},
    {"rendezvous-id", "rdzv-id"},
    {"conf", "rdzv-conf"},
    {"id", "rdzv-id"},
    {"run-id", "rdzv-id"},
    {"job-id", "rdzv-id"},
    {"restarts", "max-restarts"},
    {"retries", "max-restarts"},
    {"max-retries", "max-restarts"},
};

std::optional<std::string> meant_of(std::string_view name, const std::vector<std::string>& names) {
  for (const Elsewhere& row : kElsewhere) {
    if (row.typed == name && std::find(names.begin(), names.end(), row.here) != names.end())
      return std::string(row.here);
  }
  return did_you_mean(name, names);
}

}  // namespace

std::optional<std::string> meant_option(const Table& table, std::string_view name) {
  std::vector<std::string> names;
  for (const Option* option : options_of(table))
    names.emplace_back(option->name);
  return meant_of(name, names);
}

std::vector<std::string> mistyped_variables(const Table& table,
                                            std::span<const std::string> variables) {
  std::vector<std::string> read;
  std::vector<std::string> options;
  for (const Option* option : options_of(table)) {
    options.emplace_back(option->name);
    if (!option->env.empty()) read.emplace_back(option->name);
  }
  std::vector<std::string> warnings;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(kPrefix)) continue;
    std::string name = to_lower(std::string_view(variable).substr(kPrefix.size()));
    std::replace(name.begin(), name.end(), '_', '-');
    // The exact name of an option is not a typing error, even if the option reads no variable
    // (numa-binding, logs-specs).
    if (std::find(options.begin(), options.end(), name) != options.end()) continue;
    auto meant = meant_of(name, read);
    if (!meant) continue;
    *meant = to_upper(*meant);
    std::replace(meant->begin(), meant->end(), '-', '_');
    warnings.push_back(fmt::format("the environment variable {} is not read: did you mean {}{}?",
                                   printable(variable), kPrefix, *meant));
  }
  return warnings;
}

}  // namespace lockstep::cli
