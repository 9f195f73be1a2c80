// The options of `lockstep run --on-demand`, `up`, `offers` and `cluster add --on-demand`: which
// machines to rent, at what price, for how long, and who ends the machines.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cloud/rental.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// The options as typed. wish_of(), terms_of(), networks_of() and wait_seconds() check the values.
struct OnDemandOptions {
  std::optional<std::string> gpus;  // --on-demand A100:8, up --gpus A100:8
  std::optional<std::string> spot;  // "only" or "prefer"; not given: on demand
  std::optional<std::string> provider;
  std::optional<std::string> region;
  std::optional<std::string> max_price;
  std::optional<std::string> budget;
  std::optional<std::string> lifetime;
  std::optional<std::string> autostop;
  std::optional<std::string> hold;
  std::optional<std::string> wait;
  std::optional<std::int64_t> disk;
  std::optional<std::string> image;
  std::optional<std::string> guard;
  std::optional<std::string> allow_from;
  std::optional<std::string> resume_arg;
  bool will_watch = false;
  bool at_least = false;
  bool yes = false;
  bool print = false;
};

// Return the rows that choose machines, bound money and time, and show or confirm the plan. gpus:
// the name of the option for GPUs; empty if GPUs are an operand.
std::vector<Option> machine_rows(std::string_view gpus);
std::vector<Option> terms_rows();
std::vector<Option> consent_rows();

// Return all rows above, and the rows about a job's files, for `lockstep run`.
std::vector<Group> on_demand_groups();
std::vector<Option> on_demand_rows();

// Return the wish for machines and the terms of the rental. nodes: the number of machines; nullopt:
// one. Errors: invalid_input, with the option's name.
Result<cloud::Wish> wish_of(const OnDemandOptions& options,
                            const std::optional<std::string>& nodes);
Result<cloud::Terms> terms_of(const OnDemandOptions& options);
// Returns the networks of --allow-from, separated by commas; "": the option was not given.
Result<std::string> networks_of(const std::optional<std::string>& text);
// Returns how long to keep asking providers for machines; nullopt: for ever.
Result<std::optional<std::int64_t>> wait_seconds(const OnDemandOptions& options);

// Parses "90s", "10m", "6h", "2d" or "1h30m" and returns seconds: more than 0, one year at most.
// what: the option's name, for the error.
Result<std::int64_t> parse_time(std::string_view what, std::string_view text);

}  // namespace lockstep::cli
