// lockstep store: serves a TCPStore until a signal, for clients of PyTorch or other launchers.
#include "cli/store_options.h"
#include "cli/subcommand.h"
#include "io/fd.h"
#include "io/open_files.h"
#include "store/serve.h"

#include <fmt/core.h>

#include <cstdio>

namespace lockstep::cli {
namespace {

constexpr std::size_t kOwnFiles = 12;  // descriptors of the server itself

std::string stats_line(const store::Stats& now, const store::Stats& before) {
  std::string line = fmt::format(
      "store: {} connections ({} so far), {} requests (+{}), {} keys, {} bytes, {} waiting, in {}, "
      "out {}",
      now.connections, now.connections_total, now.requests_total,
      now.requests_total - before.requests_total, now.keys, now.key_space_bytes, now.parked,
      now.bytes_in, now.bytes_out);
  for (std::size_t i = 0; i < store::kOpCount; ++i) {
    const std::uint64_t more = now.requests[i] - before.requests[i];
    if (more > 0) line += fmt::format(", {} +{}", op_name(static_cast<store::Op>(i)), more);
  }
  if (now.refused > 0) line += fmt::format(", {} refused", now.refused);
  if (now.closed_for_error > 0) {
    line += fmt::format(", {} closed for errors (last: {})", now.closed_for_error, now.last_error);
  }
  return line + "\n";
}

Status serve(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const StoreOptions options, store_options(call.parsed));
  // Each client needs a descriptor, and the usual soft limit of 1024 is too low for a large job.
  LOCKSTEP_TRY(io::check_open_files(kOwnFiles));
  io::raise_open_files_limit();
  store::ServeOptions serve;
  serve.host = options.host;
  serve.port = static_cast<int>(options.port);
  serve.max_value_bytes = static_cast<std::size_t>(options.max_value_bytes);
  serve.on_listening = [&serve](int port) {
    // With --port 0 a script learns the port from this line, so the line must not stay in a buffer.
    std::printf("listening on %s:%d\n", serve.host.empty() ? "*" : serve.host.c_str(), port);
    std::fflush(stdout);
  };
  if (options.print_stats)
    serve.on_change = [](const store::Stats& now, const store::Stats& before) {
      std::fputs(stats_line(now, before).c_str(), stderr);
    };
  return store::serve_until_signal(serve);
}

}  // namespace

extern constinit const Subcommand kStore{.name = "store",
                                         .summary = "serve a TCPStore",
                                         .table = store_table,
                                         .run = run_status<serve>,
                                         .fails_with = always(ExitCode::failed)};

}  // namespace lockstep::cli
