// The option tables of the subcommands, and what was parsed with them as the structs that the rooms
// below understand.
#pragma once

#include "cli/options.h"
#include "launch/raw_options.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::cli {

const Table& run_table();       // lockstep run, torchrun
const Table& torchrun_table();  // the same rows under the name torchrun
const Table& launch_table();    // lockstep launch: run_table and what torch.distributed.launch adds
const Table& store_table();     // lockstep store

// parsed: by run_table or launch_table, with a script.
launch::RawOptions raw_options(const Parsed& parsed, bool legacy_launch);

struct StoreOptions {
  std::string host = "127.0.0.1";
  std::int64_t port = 29500;
  bool print_stats = false;
  std::int64_t max_value_bytes = std::int64_t{256} << 20;
};
Result<StoreOptions> store_options(const Parsed& parsed);

struct Subcommand {
  std::string_view name;
  const Table* table;  // nullptr: takes no options
  std::string_view summary;
};
std::span<const Subcommand> subcommands();

}  // namespace lockstep::cli
