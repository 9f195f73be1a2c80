#include "io/place_text.h"

#include <fmt/core.h>

namespace lockstep::io {

std::string place_text(const std::string& host, int port) {
  // Without brackets the port could not be told from the address.
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(bracketed ? "[{}]:{}" : "{}:{}"), host, port);
}

}  // namespace lockstep::io
