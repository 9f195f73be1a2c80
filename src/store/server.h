// The store's listening socket and connections on an event loop. A thin driver around Engine. One
// thread serves ten thousand connections, and none of them can stall another. The port is open for
// the lifetime of the object.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "store/engine.h"
#include "store/wire.h"
#include "store/witness.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::store {

struct ServerOptions {
  // "": every interface, IPv6 and IPv4. "localhost", an address or a name: only there.
  std::string host = {};
  int port = 0;        // 0: the kernel picks a free port
  int backlog = 4096;  // thousands of clients may connect in the same second
  std::size_t read_buffer_bytes = 256U << 10;  // shared by all connections
  // Read nothing more from a connection with more unsent bytes than this until the peer has taken
  // them.
  std::size_t max_unsent_bytes = 4U << 20;
  // A connection whose requests cost more than this (Engine::effort()) continues in a later turn of
  // the loop, after all others.
  std::uint64_t max_effort_per_turn = 64U << 10;
  Limits limits = {};
};

struct Stats {
  std::size_t connections = 0;
  std::uint64_t connections_total = 0;
  std::array<std::uint64_t, kOpCount> requests{};  // by Op
  std::uint64_t requests_total = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::size_t keys = 0;
  std::size_t key_space_bytes = 0;
  std::size_t parked = 0;     // waits without an answer so far
  std::uint64_t refused = 0;  // accepted and closed at once: out of descriptors
  std::uint64_t closed_for_error = 0;
  std::string last_error;  // "HOST:PORT: why"
};

class Server {
 public:
  using Options = ServerOptions;

  // Opens the port. Fails with already_exists if the port is taken.
  static Result<std::unique_ptr<Server>> listen(io::Loop& loop, Options options = {});
  ~Server();  // closes every connection
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  const Options& options() const { return options_; }

  // The engine. After changing keys through this reference, call flush() to send the answers to
  // waiting peers.
  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  void flush();

  void set(std::string_view key, std::string_view value);
  // Drops all keys and closes every connection, accepted or not yet. Requests that a peer had
  // already sent must not be served after the purge. Call only when all peers are known to be dead.
  void purge();
  void purge_except(std::span<const std::string> prefixes) {
    engine_.purge_except(prefixes);
    left_.clear();  // of the attempt before
  }

  Stats stats() const;
  // Takes a witness of all connections: see witness.h. Looks at every key, so call it about once a
  // second at most.
  Witness witness(const WitnessLimits& limits = {}) const;
  // Sets a callback that runs in a turn of its own after connections have closed.
  void on_departure(std::function<void()> fn);
  // Returns the peers ("HOST:PORT") that left while on_departure() was set, each once.
  std::vector<std::string> take_departed() { return std::exchange(departed_, {}); }
  // For a host that only waits for its guests to leave. From now on, a guest whose machine has not
  // answered for some seconds counts as gone, even if its connection never closed. (During work a
  // guest may be cut off for as long as it likes: PyTorch's clients wait for ever.)
  void await_departures();

 private:
  struct Connection;

  Server(io::Loop& loop, Options options);
  void on_acceptable();
  bool close_oldest_silent();
  void refuse_one();
  void admit(io::Fd fd);
  void on_event(Connection& connection, int events);
  void on_readable(Connection& connection, bool broken);
  void serve(Connection& connection, std::string_view bytes);
  void feed(Connection& connection, std::string_view& bytes);
  bool resume(Connection& connection);
  void settle(Connection& connection);
  bool send_out(Connection& connection);
  void close_for_error(Connection& connection);
  void close(Connection& connection);
  void remember(const Connection& connection);
  void flush_touched();
  void drop_the_vanished();

  io::Loop& loop_;
  Options options_;
  Engine engine_;
  int port_ = 0;
  io::Fd listener_;
  io::Fd spare_;  // released for a moment when descriptors run out
  std::unique_ptr<io::Watch> accept_watch_;
  std::vector<std::unique_ptr<Connection>> connections_;
  // Not zeroed: only the pages of a large buffer that requests have filled cost memory. Allocated
  // on first use, as many jobs never use their store.
  std::size_t buffer_size_;
  std::unique_ptr<char[]> buffer_;
  std::string
      scratch_;   // outgoing bytes of the connection being served, so that idle ones own none
  Stats counts_;  // counters; stats() adds the rest
  bool refusal_logged_ = false;
  std::function<void()> on_departure_;
  std::vector<std::string> departed_;
  std::deque<WitnessSession> left_;  // the last clients that have announced a pid and left
  io::Timer departure_;
  io::Timer vigil_;  // while await_departures() is in effect
};

}  // namespace lockstep::store
