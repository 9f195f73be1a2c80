// Pipelined load generator: N connections, each with P requests under way until M are answered,
// alternating SET and GET of one key per connection. Speaks TCPStore (newer dialect) or redis' RESP
// with the same payload.
//   bench_store_client --port P [--protocol store|redis] [--connections N] [--requests M]
//                      [--depth P] [--value BYTES] [--pid SERVER]
// Prints one line: requests/s, and with --pid the server's CPU microseconds per request.
#include "store/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace lockstep::store;  // NOLINT

struct Settings {
  bool redis = false;
  int port = 0;
  int connections = 1;
  long requests = 100'000;  // per connection, even
  long depth = 16;          // even
  long value = 100;
  int pid = 0;
};

// What one connection sends, the same SET+GET pair again and again, and how long an answer is.
struct Script {
  std::string burst;  // depth requests
  std::size_t pair_reply = 0;
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::string resp(const std::vector<std::string_view>& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const auto word : words)
    out += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  return out;
}

Script make_script(const Settings& settings, int index) {
  const std::string key = "/bench/key/" + std::to_string(1'000'000 + index);
  const std::string value(static_cast<std::size_t>(settings.value), 'v');
  Script script;
  std::string pair;
  if (settings.redis) {
    pair = resp({"SET", key, value}) + resp({"GET", key});
    script.pair_reply = 5 + 1 + std::to_string(value.size()).size() + 2 + value.size() + 2;
  } else {
    if (!put_request(pair, Dialect::d, {.op = Op::set, .key = key, .value = value}) ||
        !put_request(pair, Dialect::d, {.op = Op::get, .key = key})) {
      std::abort();
    }
    script.pair_reply = 8 + value.size();
  }
  for (long i = 0; i < settings.depth / 2; ++i)
    script.burst += pair;
  return script;
}

struct Peer {
  int fd = -1;
  Script script;
  long to_send = 0;            // pairs
  std::size_t to_receive = 0;  // bytes
  std::size_t owed = 0;        // bytes of the burst under way
};

void send_burst(Peer& peer, long depth) {
  const long pairs = std::min(peer.to_send, depth / 2);
  if (pairs == 0) return;
  const std::size_t size = peer.script.burst.size() / static_cast<std::size_t>(depth / 2) *
                           static_cast<std::size_t>(pairs);
  std::size_t sent = 0;
  while (sent < size) {
    const ssize_t put = send(peer.fd, peer.script.burst.data() + sent, size - sent, 0);
    if (put < 0) die("send");
    sent += static_cast<std::size_t>(put);
  }
  peer.to_send -= pairs;
  peer.owed = static_cast<std::size_t>(pairs) * peer.script.pair_reply;
}

int connect_to(const Settings& settings) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(settings.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    die("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (settings.redis) return fd;
  const std::string hello = greeting(Dialect::d, 1);
  char echo[4];
  if (send(fd, hello.data(), hello.size(), 0) < 0 || recv(fd, echo, 4, MSG_WAITALL) != 4)
    die("greeting");
  return fd;
}

// Ticks of user and system time of a process so far.
double cpu_seconds(int pid) {
  if (pid == 0) return 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto end = text.rfind(')');
  if (end == std::string::npos) return 0;
  long user = 0;
  long system = 0;
  std::sscanf(text.c_str() + end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
              &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Settings read_settings(int argc, char** argv) {
  Settings settings;
  std::map<std::string_view, long*> numbers;
  long port = 0;
  long connections = 1;
  long pid = 0;
  numbers = {{"--port", &port},
             {"--connections", &connections},
             {"--pid", &pid},
             {"--requests", &settings.requests},
             {"--depth", &settings.depth},
             {"--value", &settings.value}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto found = numbers.find(argv[i]);
    if (found != numbers.end()) {
      *found->second = std::atol(argv[i + 1]);
    } else if (std::string_view(argv[i]) == "--protocol") {
      settings.redis = std::string_view(argv[i + 1]) == "redis";
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      std::exit(2);
    }
  }
  settings.port = static_cast<int>(port);
  settings.connections = static_cast<int>(connections);
  settings.pid = static_cast<int>(pid);
  settings.depth = std::max(2L, settings.depth / 2 * 2);
  settings.requests = std::max(2L, settings.requests / 2 * 2);
  return settings;
}

void pump(std::vector<Peer>& peers, const Settings& settings) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(poll, EPOLL_CTL_ADD, peers[i].fd, &event) != 0) die("epoll_ctl");
    send_burst(peers[i], settings.depth);
  }
  std::vector<char> buffer(256 << 10);
  epoll_event events[256];
  for (std::size_t left = peers.size(); left > 0;) {
    const int ready = epoll_wait(poll, events, 256, 10'000);
    if (ready <= 0) die("epoll_wait: no answer for 10 s");
    for (int i = 0; i < ready; ++i) {
      Peer& peer = peers[events[i].data.u64];
      const ssize_t got = recv(peer.fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) die("recv");
      peer.owed -= static_cast<std::size_t>(got);
      peer.to_receive -= static_cast<std::size_t>(got);
      if (peer.owed == 0) send_burst(peer, settings.depth);
      if (peer.to_receive == 0) --left;
    }
  }
  close(poll);
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = read_settings(argc, argv);
  std::vector<Peer> peers(static_cast<std::size_t>(settings.connections));
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].fd = connect_to(settings);
    peers[i].script = make_script(settings, static_cast<int>(i));
    peers[i].to_send = settings.requests / 2;
    peers[i].to_receive =
        static_cast<std::size_t>(settings.requests / 2) * peers[i].script.pair_reply;
  }
  const double cpu = cpu_seconds(settings.pid);
  const auto start = std::chrono::steady_clock::now();
  pump(peers, settings);
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double total = static_cast<double>(settings.requests) * settings.connections;
  std::printf("requests/s %.0f cpu_us/request %.3f wall %.2f\n", total / wall,
              (cpu_seconds(settings.pid) - cpu) / total * 1e6, wall);
}
