// The store on its own: `lockstep store`.
#pragma once

#include "base/error.h"
#include "store/wire.h"

#include <cstddef>
#include <string>

namespace lockstep::store {

struct ServeOptions {
  std::string host = {};  // as ServerOptions::host
  int port = 29500;
  std::size_t max_value_bytes = Limits{}.max_value_bytes;
  bool print_stats = false;  // a line per second on stderr while something changes
};

// Prints "listening on HOST:PORT" to stdout and serves until SIGTERM or SIGINT, which it blocks for
// the calling thread.
Status serve_until_signal(const ServeOptions& options);

}  // namespace lockstep::store
