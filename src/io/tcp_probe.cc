// Sets TCP's probes and timeouts.
#include "io/tcp_probe.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace lockstep::io {
namespace {

void set(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

void probe_peer(int fd, const ProbePlan& plan) {
  // Set SO_KEEPALIVE first: while it is on, setting TCP_KEEPIDLE counts from the last received byte
  // instead of from now.
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(plan.every.count()));
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, plan.most);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(plan.idle.count()));
}

void probe_server(int fd) {
  constexpr ProbePlan kPlan{std::chrono::seconds(5), std::chrono::seconds(5), 3};
  constexpr int kMostMs = 20'000;
  probe_peer(fd, kPlan);
  // Keepalive probes stop while data is unacknowledged. TCP_USER_TIMEOUT covers that case.
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kMostMs);
}

void tune_client(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  probe_server(fd);
}

bool ignores_data(int fd, std::chrono::milliseconds patience) {
  constexpr int kAgainAndAgain = 3;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  // One lost segment is normal. Three retransmissions without any sign of life are not.
  return info.tcpi_unacked > 0 && info.tcpi_retransmits >= kAgainAndAgain &&
         std::chrono::milliseconds(info.tcpi_last_ack_recv) >= patience;
}

}  // namespace lockstep::io
