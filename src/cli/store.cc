// lockstep store: the key-value server alone.
#include "cli/commands.h"
#include "cli/run_options.h"
#include "io/fd.h"
#include "store/serve.h"

#include <cstdio>

namespace lockstep::cli {

int store_command(const Args& args) {
  const Table& table = store_table();
  const auto parsed = parse_options(table, args, [](std::string_view) { return std::nullopt; });
  if (const auto code = settled(table, parsed)) return *code;
  const auto options = store_options(*parsed);
  if (!options) {
    print_error(table.program, options.error());
    return 1;
  }
  io::raise_open_files_limit();
  store::ServeOptions serve;
  serve.host = options->host;
  serve.port = static_cast<int>(options->port);
  serve.print_stats = options->print_stats;
  serve.max_value_bytes = static_cast<std::size_t>(options->max_value_bytes);
  if (const Status served = store::serve_until_signal(serve); !served) {
    print_error(table.program, served.error());
    return 1;
  }
  return 0;
}

}  // namespace lockstep::cli
