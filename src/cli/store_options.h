// The option table of `lockstep store`, and the values of its options.
#pragma once

#include "cli/options.h"

#include <cstdint>
#include <string>

namespace lockstep::cli {

const Table& store_table();

struct StoreOptions {
  std::string host = "127.0.0.1";
  std::int64_t port = 29500;
  bool print_stats = false;
  std::int64_t max_value_bytes = std::int64_t{256} << 20;
};
// Returns the checked options. Errors: invalid_input.
Result<StoreOptions> store_options(const Parsed& parsed);

}  // namespace lockstep::cli
