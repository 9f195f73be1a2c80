// A TCPStore client on the event loop, in the newer dialect (PyTorch from 2.2). Requests may be
// made at any time, even before the connection exists. Each request has a deadline and one
// callback. No callback runs inside the requesting call. A callback may destroy the client or make
// new requests.
//
// The protocol has no request numbers. While the server owes the answer to a WAIT, nothing else is
// sent on this connection: requests that must not queue behind a WAIT need a client of their own.
// All other requests are pipelined. Keys are sent as given. PyTorch's own clients put "/" before a
// key.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/dialer.h"
#include "io/fd.h"
#include "io/loop.h"
#include "store/wire.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::store {

struct AsyncClientOptions {
  std::string host = "127.0.0.1";
  int port = 29500;
  std::chrono::milliseconds connect_timeout{60'000};
  std::chrono::milliseconds timeout{60'000};  // default for requests
};

class AsyncClient {
 public:
  using Options = AsyncClientOptions;
  using Ms = std::chrono::milliseconds;
  using Keys = std::vector<std::string>;
  using Entries = std::vector<std::pair<std::string, std::string>>;
  using Timeout = std::optional<Ms>;  // from the call on, including time in the queue
  template <class T>
  using Done = std::function<void(Result<T>)>;

  AsyncClient(io::Loop& loop, Options options);
  ~AsyncClient();  // drops pending requests: no callback follows
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  // Connects. Call once. Retries with growing pauses until connect_timeout, since the server may
  // start later. Each attempt looks up the host name anew.
  void connect(Done<void> done);
  bool connected() const { return stage_ == Stage::ready; }
  // Describes the last failed attempt to connect, or what the current attempt waits for. For
  // notices to a waiting user.
  std::string attempt_text() const;
  // Sets the callback for a connection lost after it was made. Runs after the callbacks of all
  // pending requests, which fail with the same error.
  void on_loss(std::function<void(const Error&)> fn) { on_loss_ = std::move(fn); }
  // Returns this end's address of a connected client. The server sees the same address unless a NAT
  // translates. Empty: not connected.
  std::string local_address() const;
  std::string local_place() const;  // local address as "HOST:PORT"
  std::string place() const;        // server as "HOST:PORT"

  // SET is done when the kernel has the bytes: the protocol has no answer to SET. A following
  // ping() proves arrival.
  void set(std::string_view key, std::string_view value, Done<void> done, Timeout timeout = {});
  void multi_set(const Entries& entries, Done<void> done, Timeout timeout = {});
  void ping(Done<void> done, Timeout timeout = {});
  // Waits for the keys first, as PyTorch's clients do.
  void get(std::string_view key, Done<std::string> done, Timeout timeout = {});
  void multi_get(const Keys& keys, Done<Keys> done, Timeout timeout = {});
  // Succeeds when all keys exist. Fails with Errc::timeout otherwise: the wait is then canceled and
  // the connection stays usable.
  void wait(const Keys& keys, Done<void> done, Timeout timeout = {});
  // Returns the value now stored, or `expected` if the key is missing and `expected` is not empty.
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done, Timeout timeout = {});
  // Returns the sum. Fails the connection if the value is not a number.
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done, Timeout timeout = {});
  void delete_key(std::string_view key, Done<bool> done,
                  Timeout timeout = {});  // true: the key existed

  std::size_t pending() const { return queue_.size() + sent_.size(); }

 private:
  enum class Stage { idle, dialing, greeting, ready, down };
  enum class Reply { none, byte, word, number, text, texts };
  struct Answer {
    std::int64_t number = 0;
    std::vector<std::string> values;
  };
  struct Pending {
    std::string bytes;
    Reply reply = Reply::none;
    std::size_t values = 0;    // number of strings in Reply::texts
    std::uint64_t end = 0;     // Reply::none: stream offset of the request's last byte
    io::TimePoint deadline{};  // max(): no deadline
    std::string what;          // "wait timeout after 300ms, keys: a"
    bool parks = false;        // a WAIT: send nothing more until the answer is here
    bool canceled = false;     // a WAIT being canceled: the answer is 1
    Answer answer;
    std::function<void(Result<Answer>)> done;  // empty: read and drop the answer
  };

  // Requests (async_client.cc)
  Pending make(const Request& request, Reply reply, Timeout timeout) const;
  void ask(Pending pending);
  void wait_then(const Keys& keys, Timeout timeout, const Request& then, Reply reply,
                 std::function<void(Result<Answer>)> done);
  void arm_deadline();
  void expire();
  // These run callbacks. They return false if a callback destroyed the client.
  bool fail_all(const Error& error);
  bool finish(const Pending& pending, Result<Answer> answer) const;
  void take_back(Pending& wait);

  // The stream (async_client.cc)
  void on_event(int events);
  void pump();
  bool flush();
  bool receive();
  bool take_answers();
  enum class Parse { done, more, corrupt };
  Parse parse(Pending& pending);
  void want();
  void lose(const Error& error);

  // Connecting (async_connect.cc)
  void greet(io::Fd fd);
  void read_echo();
  void next_address(Error error);
  void give_up(Error error);
  void became_ready();
  std::string connecting() const;

  io::Loop& loop_;
  Options options_;
  Stage stage_ = Stage::idle;
  io::Fd fd_;
  std::unique_ptr<io::Watch> watch_;    // declared after fd_: destroyed first
  std::unique_ptr<io::Dialer> dialer_;  // until the connection is made
  io::Timer greet_timer_;               // limit of the greeting
  io::Timer deadline_timer_;            // due at the nearest deadline of a request, or earlier
  io::TimePoint armed_ = io::TimePoint::max();  // due time of deadline_timer_
  Done<void> connect_done_;
  std::function<void(const Error&)> on_loss_;
  std::optional<Error> down_error_;

  std::deque<Pending> queue_;  // not sent yet
  std::deque<Pending> sent_;   // in the order of their answers
  std::string out_;            // encoded bytes; the kernel has taken the first out_sent_ of them
  std::size_t out_sent_ = 0;
  std::uint64_t put_total_ = 0;    // total bytes appended to out_
  std::uint64_t taken_total_ = 0;  // total bytes taken by the kernel
  std::string in_;                 // received bytes; the first in_taken_ are parsed
  std::size_t in_taken_ = 0;
  CallbackScope calls_;
};

}  // namespace lockstep::store
