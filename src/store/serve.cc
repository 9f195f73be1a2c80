// One loop, one server, one signalfd, one timer.
#include "store/serve.h"

#include "host/port_owner.h"
#include "io/fd.h"
#include "io/loop.h"
#include "store/server.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace lockstep::store {
namespace {

std::string stats_line(const Stats& now, const Stats& before) {
  std::string line = fmt::format(
      "store: {} connections ({} so far), {} requests (+{}), {} keys, {} bytes, {} waiting, in {}, "
      "out {}",
      now.connections, now.connections_total, now.requests_total,
      now.requests_total - before.requests_total, now.keys, now.key_space_bytes, now.parked,
      now.bytes_in, now.bytes_out);
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const std::uint64_t more = now.requests[i] - before.requests[i];
    if (more > 0) line += fmt::format(", {} +{}", op_name(static_cast<Op>(i)), more);
  }
  if (now.refused > 0) line += fmt::format(", {} refused", now.refused);
  if (now.closed_for_error > 0) {
    line += fmt::format(", {} closed for errors (last: {})", now.closed_for_error, now.last_error);
  }
  return line + "\n";
}

bool changed(const Stats& now, const Stats& before) {
  return now.requests_total != before.requests_total || now.connections != before.connections ||
         now.connections_total != before.connections_total || now.bytes_in != before.bytes_in ||
         now.bytes_out != before.bytes_out || now.refused != before.refused ||
         now.closed_for_error != before.closed_for_error;
}

class StatsPrinter {
 public:
  StatsPrinter(io::Loop& loop, const Server& server) : server_(server), timer_(loop) { arm(); }

 private:
  void arm() {
    timer_.start(std::chrono::seconds(1), [this] {
      Stats now = server_.stats();
      if (changed(now, last_)) fputs(stats_line(now, last_).c_str(), stderr);
      last_ = std::move(now);
      arm();
    });
  }

  const Server& server_;
  Stats last_;
  io::Timer timer_;
};

}  // namespace

Status serve_until_signal(const ServeOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return fail_sys("block signals", errno);
  const io::Fd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd) return fail_sys("signalfd", errno);

  Limits limits;
  limits.max_value_bytes = options.max_value_bytes;
  // COMPARE_SET carries two values.
  limits.max_message_bytes =
      std::max(limits.max_message_bytes, 2 * limits.max_value_bytes + (1U << 20));
  io::Loop loop;
  auto listening =
      Server::listen(loop, {.host = options.host, .port = options.port, .limits = limits});
  if (!listening) {
    Error error = std::move(listening).error();
    host::name_port_holder(error, options.port);
    return Failure(std::move(error));
  }
  const std::unique_ptr<Server> server = std::move(*listening);
  io::Watch signal_watch(loop, signal_fd.get());
  signal_watch.start(io::kReadable, [&](int) { loop.stop(); });
  std::optional<StatsPrinter> printer;
  if (options.print_stats) printer.emplace(loop, *server);
  printf("listening on %s:%d\n", options.host.empty() ? "*" : options.host.c_str(), server->port());
  fflush(stdout);
  loop.run();
  return {};
}

}  // namespace lockstep::store
