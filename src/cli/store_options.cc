#include "cli/store_options.h"

#include <fmt/core.h>

namespace lockstep::cli {
namespace {

Table make_store_table() {
  return {.program = "lockstep store",
          .summary = "Serves the key-value store for clients of PyTorch's TCPStore.",
          .examples =
              "lockstep store\n"
              "lockstep store --host 0.0.0.0 --port 0 --print-stats",
          .details = "Runs until a signal comes.",
          .epilog = "",
          .operands = Operands::none,
          .groups = {{"Options",
                      {
                          {.name = "host",
                           .field = into<&StoreOptions::host>,
                           .metavar = "HOST",
                           .help = "address to listen on",
                           .shown_default = "127.0.0.1"},
                          {.name = "port",
                           .field = into<&StoreOptions::port>,
                           .metavar = "PORT",
                           .help = "port to listen on; 0: any, printed",
                           .shown_default = "29500"},
                          {.name = "print-stats",
                           .field = into<&StoreOptions::print_stats>,
                           .help = "counts of requests on stderr at the end"},
                          {.name = "max-value-bytes",
                           .field = into<&StoreOptions::max_value_bytes>,
                           .metavar = "BYTES",
                           .help = "largest value taken from a client",
                           .shown_default = "268435456"},
                          help_option(),
                          version_option(),
                      }}}};
}

}  // namespace

const Table& store_table() {
  static const Table table = make_store_table();
  return table;
}

Result<StoreOptions> store_options(const Parsed& parsed) {
  StoreOptions options;
  fill(store_table(), parsed, options);
  if (options.port < 0 || options.port > 65535)
    return fail(Errc::invalid_input,
                fmt::format("--port must be between 0 and 65535, got {}", options.port));
  if (options.max_value_bytes < 1)
    return fail(Errc::invalid_input,
                fmt::format("--max-value-bytes must be > 0, got {}", options.max_value_bytes));
  return options;
}

}  // namespace lockstep::cli
