#include "cli/store_options.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::cli {
namespace {

Table make_store_table() {
  return {"lockstep store",
          "Serves the key-value store that PyTorch's TCPStore clients speak to, until\n"
          "stopped by a signal.",
          "",
          false,
          {{"Options",
            {
                {.name = "host",
                 .kind = Kind::text,
                 .metavar = "HOST",
                 .help = "address to listen on",
                 .shown_default = "127.0.0.1"},
                {.name = "port",
                 .kind = Kind::integer,
                 .metavar = "PORT",
                 .help = "port to listen on; 0: any, printed",
                 .shown_default = "29500"},
                {.name = "print-stats", .help = "counts of requests on stderr at the end"},
                {.name = "max-value-bytes",
                 .kind = Kind::integer,
                 .metavar = "BYTES",
                 .help = "largest value taken from a client",
                 .shown_default = "268435456"},
                {.name = "help", .help = "this text", .letter = 'h', .ends_parsing = true},
                {.name = "version", .help = "the version", .ends_parsing = true},
            }}}};
}

std::optional<std::int64_t> integer(const Parsed& parsed, std::string_view name) {
  const auto text = parsed.text(name);
  return text ? parse_int(*text) : std::nullopt;
}

}  // namespace

const Table& store_table() {
  static const Table table = make_store_table();
  return table;
}

Result<StoreOptions> store_options(const Parsed& parsed) {
  StoreOptions options;
  options.host = parsed.text_or("host", options.host);
  options.port = integer(parsed, "port").value_or(options.port);
  options.print_stats = parsed.has("print-stats");
  options.max_value_bytes = integer(parsed, "max-value-bytes").value_or(options.max_value_bytes);
  if (options.port < 0 || options.port > 65535)
    return fail(Errc::invalid_input,
                fmt::format("--port must be between 0 and 65535, got {}", options.port));
  if (options.max_value_bytes < 1)
    return fail(Errc::invalid_input,
                fmt::format("--max-value-bytes must be > 0, got {}", options.max_value_bytes));
  return options;
}

}  // namespace lockstep::cli
