// The option table of `lockstep page`.
#pragma once

#include "cli/options.h"

#include <cstdint>
#include <optional>

namespace lockstep::cli {

struct PageOptions {
  std::optional<std::int64_t> node = {};  // nullopt: see find_page()
  std::int64_t port = 0;
  bool json = false;
};

const Table& page_table();

}  // namespace lockstep::cli
