// The command lines of `lockstep jobs`, `logs`, `wait`, `cancel` and `resume`.
#pragma once

#include "cli/options.h"
#include "cli/variable_options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

struct JobsOptions {
  bool json = false;
  bool offline = false;    // show states as last seen, ask no host
  std::int64_t most = 20;  // how many jobs, the newest first
};

struct LogsOptions {
  bool follow = false;
  std::optional<std::int64_t> lines;  // the last lines of each host's two outputs; nullopt: all
  std::optional<std::int64_t> rank;   // nullopt: all ranks
  std::string fold = "auto";          // "auto", "always", "never"
  bool json = false;
};

// Options of wait and cancel.
struct EndingOptions {
  bool json = false;
};

struct ResumeOptions {
  bool json = false;
  VariableOptions variables;
};

const Table& jobs_table();
const Table& logs_table();
const Table& wait_table();
const Table& cancel_table();
const Table& resume_table();

ResumeOptions resume_options(const Parsed& parsed);

}  // namespace lockstep::cli
