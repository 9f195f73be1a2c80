// What `lockstep run --on-demand`, `up`, `offers` and `cluster add --on-demand` take: which
// machines, at what price, for how long, and who ends them.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cloud/rental.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

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
  std::vector<std::string> back;  // of `run`: brought back at the end
  std::optional<std::string> resume_arg;
  bool will_watch = false;
  bool at_least = false;
  bool yes = false;
  bool print = false;
};

// Those that say which machines: gpus is what the option with the GPUs is called; empty: it is an
// operand.
std::vector<Option> machine_rows(std::string_view gpus);
// Those about money and time.
std::vector<Option> terms_rows();
// Plan and question.
std::vector<Option> consent_rows();

// All of them and what goes with a job, for `lockstep run`.
std::vector<Group> on_demand_groups();
std::vector<Option> on_demand_rows();

// nodes: how many; nullopt: one.
Result<cloud::Wish> wish_of(const OnDemandOptions& options,
                            const std::optional<std::string>& nodes);
Result<cloud::Terms> terms_of(const OnDemandOptions& options);
// Of --allow-from: "" where it is not given.
Result<std::string> networks_of(const std::optional<std::string>& text);
// How long somebody is waited for who has it; nullopt: for ever.
Result<std::optional<std::int64_t>> wait_seconds(const OnDemandOptions& options);

// "90s", "10m", "6h", "2d", "1h30m": seconds. what: the option's name, for the error.
Result<std::int64_t> parse_time(std::string_view what, std::string_view text);
// "6 h", "1 h 30 min", "45 s".
std::string time_words(std::int64_t seconds);

}  // namespace lockstep::cli
