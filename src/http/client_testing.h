// A scripted HTTP server on the test's own loop, for tests of clients.
#pragma once

#include "io/fd.h"
#include "io/listen.h"
#include "io/loop.h"

#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::http::testing {

class ScriptedServer {
 public:
  struct Say {
    std::string bytes;
    bool close = false;
  };
  // Called for each whole request. Request bodies need a Content-Length.
  using Script = std::function<Say(const std::string& request)>;

  ScriptedServer(io::Loop& loop, Script script)
      : loop_(loop), script_(std::move(script)), listener_(*io::open_listener("127.0.0.1", 0, 16)) {
    watch_ = std::make_unique<io::Watch>(loop_, listener_.fd.get());
    watch_->start(io::kReadable, [this](int) { accept_one(); });
  }

  int port() const { return listener_.port; }
  int accepted() const { return accepted_; }
  // Sends bytes without a request, to every connection whose last request contains `asked`.
  void say(const std::string& bytes, const std::string& asked = {}) {
    for (const auto& peer : peers_)
      if (peer->fd && peer->asked.find(asked) != std::string::npos) put(*peer, bytes);
  }
  void hang_up() {
    for (const auto& peer : peers_) {
      peer->watch.reset();
      peer->fd.reset();
    }
  }

 private:
  struct Peer {
    io::Fd fd;
    std::unique_ptr<io::Watch> watch;
    std::string in;
    std::string asked;
  };

  void accept_one() {
    io::Fd fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    ++accepted_;
    peers_.push_back(std::make_unique<Peer>());
    Peer* peer = peers_.back().get();
    peer->fd = std::move(fd);
    peer->watch = std::make_unique<io::Watch>(loop_, peer->fd.get());
    peer->watch->start(io::kReadable, [this, peer](int) { read(*peer); });
  }

  void read(Peer& peer) {
    std::array<char, 65536> chunk;
    const ssize_t got = recv(peer.fd.get(), chunk.data(), chunk.size(), 0);
    if (got <= 0) {
      peer.watch.reset();
      peer.fd.reset();
      return;
    }
    peer.in.append(chunk.data(), static_cast<std::size_t>(got));
    const std::size_t end = peer.in.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const std::size_t length = peer.in.find("Content-Length: ");
    const std::size_t body = length < end ? std::stoul(peer.in.substr(length + 16)) : 0;
    if (peer.in.size() < end + 4 + body) return;
    peer.asked = peer.in.substr(0, end + 4 + body);
    const Say said = script_(peer.asked);
    peer.in.erase(0, end + 4 + body);
    put(peer, said.bytes);
    if (said.close) {
      peer.watch.reset();
      peer.fd.reset();
    }
  }

  static void put(const Peer& peer, const std::string& bytes) {
    (void)send(peer.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  io::Loop& loop_;
  Script script_;
  io::Listener listener_;
  std::unique_ptr<io::Watch> watch_;
  std::vector<std::unique_ptr<Peer>> peers_;
  int accepted_ = 0;
};

}  // namespace lockstep::http::testing
