// The command lines of `lockstep ssh` and `lockstep forward`.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/place_options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

// The options of both commands.
struct OneNodeOptions {
  std::int64_t node = 0;
  bool json = false;    // lockstep forward only
  PlaceOptions places;  // `nodes` holds the number of --node, if given
};

const Table& ssh_table();
const Table& forward_table();

// Returns the options of the called command, whose table is `table`.
OneNodeOptions one_node_options(const Table& table, const Parsed& parsed);

}  // namespace lockstep::cli
