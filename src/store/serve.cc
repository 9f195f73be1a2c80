// Runs a store without an agent: a loop, a server, a signalfd and a timer.
#include "store/serve.h"

#include "host/port_owner.h"
#include "io/fd.h"
#include "io/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace lockstep::store {
namespace {

bool changed(const Stats& now, const Stats& before) {
  return now.requests_total != before.requests_total || now.connections != before.connections ||
         now.connections_total != before.connections_total || now.bytes_in != before.bytes_in ||
         now.bytes_out != before.bytes_out || now.refused != before.refused ||
         now.closed_for_error != before.closed_for_error;
}

// Reports statistics once a second if they have changed.
class ChangeTeller {
 public:
  ChangeTeller(io::Loop& loop, const Server& server,
               std::function<void(const Stats&, const Stats&)> tell)
      : server_(server), tell_(std::move(tell)), timer_(loop) {
    arm();
  }

 private:
  void arm() {
    timer_.start(std::chrono::seconds(1), [this] {
      Stats now = server_.stats();
      if (changed(now, last_)) tell_(now, last_);
      last_ = std::move(now);
      arm();
    });
  }

  const Server& server_;
  std::function<void(const Stats&, const Stats&)> tell_;
  Stats last_;
  io::Timer timer_;
};

}  // namespace

Status serve_until_signal(const ServeOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  // Block before signalfd(): the default action of an early signal would end the process.
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return fail_sys("block signals", errno);
  const io::Fd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd) return fail_sys("signalfd", errno);

  Limits limits;
  limits.max_value_bytes = options.max_value_bytes;
  // COMPARE_SET carries two values in one message.
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
  std::optional<ChangeTeller> teller;
  if (options.on_change) teller.emplace(loop, *server, options.on_change);
  if (options.on_listening) options.on_listening(server->port());
  loop.run();
  return {};
}

}  // namespace lockstep::store
