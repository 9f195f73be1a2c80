// A blocking TCPStore client, used as the peer in the server's tests. Speaks the newer dialect, or
// the older one on request. Every call has a deadline. After a failure other than a timed-out wait
// in the newer dialect, the connection is closed and further calls fail.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "store/wire.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::store {

struct ClientOptions {
  std::string host = "127.0.0.1";
  int port = 29500;
  std::chrono::milliseconds timeout{300'000};  // to connect, then for each call
  Dialect dialect = Dialect::d;
  std::string prefix = {};  // put before every key; PyTorch's own clients use "/"
};

class Client {
 public:
  using Options = ClientOptions;
  using Ms = std::chrono::milliseconds;

  // Connects with retries and growing pauses until the timeout: the server may start after its
  // clients.
  static Result<Client> connect(Options options);

  Status set(std::string_view key, std::string_view value);
  // Waits for the key first, like PyTorch's get().
  Result<std::string> get(std::string_view key);
  // Does not wait. For a missing key a newer server sends "", an older server closes the
  // connection.
  Result<std::string> get_now(std::string_view key);
  Result<std::int64_t> add(std::string_view key, std::int64_t delta);
  // Returns the value now stored, or `expected` if the key is missing and `expected` is not empty.
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired);
  Result<bool> check(std::span<const std::string> keys);
  Status wait(std::span<const std::string> keys, std::optional<Ms> timeout = {});
  Result<std::vector<std::string>> multi_get(std::span<const std::string> keys);  // waits first
  Status multi_set(std::span<const std::pair<std::string, std::string>> entries);
  Status append(std::string_view key, std::string_view value);
  Result<bool> delete_key(std::string_view key);
  Result<std::int64_t> num_keys();
  Status queue_push(std::string_view key, std::string_view value);
  // nullopt: the queue is empty and `block` is false.
  Result<std::optional<std::string>> queue_pop(std::string_view key, bool block);
  Result<std::int64_t> queue_len(std::string_view key);
  Result<std::vector<std::string>> list_keys();  // without the prefix
  Status barrier(std::string_view key, std::int64_t world, std::optional<Ms> timeout = {});
  Status ping();

  // Counts this client in, like the constructor of PyTorch's store with a world size.
  Result<std::int64_t> announce();

  int fd() const { return fd_.get(); }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Client(Options options) : options_(std::move(options)) {}
  Status connect_once(TimePoint deadline);
  Status handshake(TimePoint deadline);
  Status ask(const Request& request, TimePoint deadline);
  Status ask_key(Op op, std::string_view key, TimePoint deadline, std::string_view value = {},
                 std::int64_t number = 0);
  Status ask_keys(Op op, std::span<const std::string> keys, TimePoint deadline);
  // Waits for the 0 that ends a WAIT or BARRIER. Cancels the wait at the deadline.
  Status await(TimePoint deadline, const std::string& what);
  Status cancel_wait();
  Status send_all(std::string_view bytes, TimePoint deadline);
  Status need(std::size_t bytes, TimePoint deadline);
  Result<std::uint8_t> take_u8(TimePoint deadline);
  Result<std::uint64_t> take_u64(TimePoint deadline);
  Result<std::string> take_string(TimePoint deadline);
  Status broken(Error error);
  TimePoint deadline(std::optional<Ms> timeout = {}) const;
  std::string full(std::string_view key) const { return options_.prefix + std::string(key); }
  std::string place() const;

  Options options_;
  io::Fd fd_;
  std::string in_;  // received bytes; the first taken_ are used up
  std::size_t taken_ = 0;
};

}  // namespace lockstep::store
