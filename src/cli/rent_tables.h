// The option tables of the subcommands for rented machines: offers, up, down, keep, cost and cloud.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct UpOptions {
  std::optional<std::string> nodes;
  bool json = false;
};

struct DownOptions {
  bool all = false;
  bool orphans = false;
  bool force = false;
  bool yes = false;
  bool json = false;
};

struct CostOptions {
  std::optional<std::string> since;
  bool json = false;
};

struct CloudCheckOptions {
  bool json = false;
};

struct CloudSelftestOptions {
  std::optional<std::string> type;
  std::optional<std::string> allow_from;
  std::optional<std::string> patience;
  bool yes = false;
};

const Table& offers_table_options();
const Table& up_table();
const Table& down_table();
const Table& keep_table();
const Table& cost_table();
const Table& cloud_check_table();
const Table& cloud_selftest_table();

}  // namespace lockstep::cli
