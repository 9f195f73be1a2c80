#include "rent/silent_port.h"

#include "base/text.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr const char* kKnownServer = "github.com:22";

}  // namespace

std::string SilentPort::known_server() {
  const char* given = std::getenv("LOCKSTEP_SSH_PROBE");
  if (given == nullptr || *given == '\0') return kKnownServer;
  return std::string_view(given) == "none" ? std::string() : std::string(given);
}

std::string SilentPort::words(const std::string& address, int port,
                              std::chrono::milliseconds silent_for, std::string_view why) {
  // Probe only once a machine is silent: most contacts never need the known server.
  if (found_ == Found::not_asked) ask();
  const std::string text =
      fmt::format("no SSH server has answered at {} port {} for {} s ({}); ", address, port,
                  std::chrono::ceil<std::chrono::seconds>(silent_for).count(), why);
  const std::string known = printable(known_, 100);
  switch (found_) {
    case Found::not_asked:
    case Found::asking:
      break;
    case Found::answers:
      // A known server that answers on port 22 rules out a firewall here.
      return text +
             fmt::format(
                 "{} answers from here, so the machine is still booting, or the machine's own "
                 "firewall is closed",
                 known);
    case Found::blocked:
      return text + fmt::format(
                        "{} does not answer from here, either ({}): a firewall here seems "
                        "to block outgoing port {}",
                        known, blocked_by_, port);
  }
  return text +
         fmt::format("the machine may still be booting, or a firewall here blocks outgoing port {}",
                     port);
}

void SilentPort::ask() {
  const std::size_t colon = known_.rfind(':');
  const auto port =
      parse_int(known_.substr(colon == std::string::npos ? known_.size() : colon + 1));
  // LOCKSTEP_SSH_PROBE may name another server, or switch the probe off in networks without GitHub.
  if (!port || *port < 1 || *port > 65'535) return;  // no known server
  found_ = Found::asking;
  const std::string host = known_.substr(0, colon);
  const int number = static_cast<int>(*port);
  if (auto digits = io::resolve_numeric(host, number))
    return on_resolved(std::move(*digits), number);
  lookup_ = std::make_unique<io::Lookup>(
      loop_, host, number,
      [this, number](Result<io::Resolved> found) { on_resolved(std::move(found), number); });
}

// A failed name lookup says nothing about ports, so the probe is given up.
void SilentPort::on_resolved(Result<io::Resolved> resolved, int port) {
  if (!resolved) return;
  probe_ = std::make_unique<SshdProbe>(loop_, io::address_text(resolved->addresses.front()), port,
                                       [this](const Status& greeted) {
                                         found_ = greeted ? Found::answers : Found::blocked;
                                         if (!greeted) blocked_by_ = greeted.error().message;
                                       });
}

bool SilentMachines::note(bool silent) {
  in_a_row_ = silent ? in_a_row_ + 1 : 0;
  return in_a_row_ >= kMost;
}

}  // namespace lockstep::rent
