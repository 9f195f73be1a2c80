// A store of its own, for `lockstep store`.
#pragma once

#include "base/error.h"
#include "store/server.h"
#include "store/wire.h"

#include <cstddef>
#include <functional>
#include <string>

namespace lockstep::store {

struct ServeOptions {
  std::string host = {};  // as ServerOptions::host
  int port = 29500;
  std::size_t max_value_bytes = Limits{}.max_value_bytes;
  // Called once with the port in use.
  std::function<void(int port)> on_listening = nullptr;
  // Called once a second if the statistics have changed. May be empty.
  std::function<void(const Stats& now, const Stats& before)> on_change = nullptr;
};

// Serves until SIGTERM or SIGINT. Blocks both signals for the calling thread. Fails if the port
// cannot be opened.
Status serve_until_signal(const ServeOptions& options);

}  // namespace lockstep::store
