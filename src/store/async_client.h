// A TCPStore client on the event loop, in the newer dialect. Requests may be made at any time,
// before the connection is there too; each has a deadline and one callback. No callback runs inside
// the call that asks; any callback may destroy the client or ask again.
//
// The protocol has no request numbers, so while the server owes the answer to a WAIT nothing else
// is sent on this connection: what must not stand behind a wait needs a client of its own.
// Everything else is pipelined. Keys go out as given; PyTorch's own clients put "/" before theirs.
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
  std::chrono::milliseconds timeout{60'000};  // of a request that names none
};

class AsyncClient {
 public:
  using Options = AsyncClientOptions;
  using Ms = std::chrono::milliseconds;
  using Keys = std::vector<std::string>;
  using Entries = std::vector<std::pair<std::string, std::string>>;
  using Timeout = std::optional<Ms>;  // from the call on, time in the queue included
  template <class T>
  using Done = std::function<void(Result<T>)>;

  AsyncClient(io::Loop& loop, Options options);
  ~AsyncClient();  // forgets what is under way: no callback comes
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  // Once. Tries again, with growing pauses, until connect_timeout: the server may start later. The
  // address list is asked for anew each time.
  void connect(Done<void> done);
  bool connected() const { return stage_ == Stage::ready; }
  // What the last attempt to connect met, or the one under way fails to get: for those who wait and
  // wonder.
  std::string attempt_text() const;
  // The connection was lost after it was made; comes after the callbacks of all pending requests,
  // which fail with the same error.
  void on_loss(std::function<void(const Error&)> fn) { on_loss_ = std::move(fn); }
  // The address on the way to the store, of a connected client: ours, as the server sees it unless
  // somebody translates.
  std::string local_address() const;
  std::string local_place() const;  // likewise, "HOST:PORT"
  std::string place() const;        // "HOST:PORT"

  // Done when the kernel has the bytes: the protocol has no answer to it. ping() tells of arrival.
  void set(std::string_view key, std::string_view value, Done<void> done, Timeout timeout = {});
  void multi_set(const Entries& entries, Done<void> done, Timeout timeout = {});
  void ping(Done<void> done, Timeout timeout = {});
  // Waits for the key first, as PyTorch's clients do.
  void get(std::string_view key, Done<std::string> done, Timeout timeout = {});
  void multi_get(const Keys& keys, Done<Keys> done, Timeout timeout = {});
  // Fails with Errc::timeout when the keys don't all exist in time; the wait is taken back then and
  // the connection lives on.
  void wait(const Keys& keys, Done<void> done, Timeout timeout = {});
  // The value now stored, or `expected` where the key is missing and that is not empty.
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done, Timeout timeout = {});
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done, Timeout timeout = {});
  void delete_key(std::string_view key, Done<bool> done,
                  Timeout timeout = {});  // true: it was there

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
    std::size_t values = 0;    // of texts
    std::uint64_t end = 0;     // of Reply::none: bytes of the stream up to its last one
    io::TimePoint deadline{};  // max(): none
    std::string what;          // "wait timeout after 300ms, keys: a"
    bool parks = false;        // a WAIT: nothing may follow until it is answered
    bool canceled = false;     // a WAIT that is being taken back: its answer is the 1
    Answer answer;
    std::function<void(Result<Answer>)> done;  // empty: the answer is read and dropped
  };

  // Requests (async_client.cc)
  Pending make(const Request& request, Reply reply, Timeout timeout) const;
  void ask(Pending pending);
  void wait_then(const Keys& keys, Timeout timeout, const Request& then, Reply reply,
                 std::function<void(Result<Answer>)> done);
  void arm_deadline();
  void expire();
  // These call back; false: the client is gone after it.
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
  std::unique_ptr<io::Watch> watch_;            // after fd_: goes first
  std::unique_ptr<io::Dialer> dialer_;          // until the connection is there
  io::Timer greet_timer_;                       // the end of a greeting
  io::Timer deadline_timer_;                    // not later than the nearest deadline of a request
  io::TimePoint armed_ = io::TimePoint::max();  // its time
  Done<void> connect_done_;
  std::function<void(const Error&)> on_loss_;
  std::optional<Error> down_error_;

  std::deque<Pending> queue_;  // not sent yet
  std::deque<Pending> sent_;   // in the order of their answers
  std::string out_;            // encoded and not taken by the kernel; out_sent_ bytes of it are
  std::size_t out_sent_ = 0;
  std::uint64_t put_total_ = 0;    // bytes ever put into out_
  std::uint64_t taken_total_ = 0;  // of those, what the kernel took
  std::string in_;                 // received; in_taken_ bytes of it are understood
  std::size_t in_taken_ = 0;
  CallbackScope calls_;
};

}  // namespace lockstep::store
