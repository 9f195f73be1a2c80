// KeyValue over a TCPStore, with the "/" of PyTorch's clients before each key. A waiting request
// blocks its connection. So one connection has the quick requests, another the waits, and each
// watch its own.
#pragma once

#include "io/loop.h"
#include "rendezvous/key_value.h"
#include "store/async_client.h"

#include <memory>
#include <string>

namespace lockstep::rendezvous {

class TcpKeyValue : public KeyValue {
 public:
  TcpKeyValue(io::Loop& loop, store::AsyncClientOptions options);

  // Connects; called once. Gives up after options.connect_timeout. No callback runs inside the
  // call.
  void connect(Done<void> done);
  // Sets the function for a lost store, called at most once after connect().
  void on_lost(std::function<void(const Error&)> fn) { on_lost_ = std::move(fn); }
  std::string attempt_text() const { return quick_.attempt_text(); }
  std::string local_address() const { return quick_.local_address(); }
  std::string local_place() const { return quick_.local_place(); }
  std::string place() const { return quick_.place(); }

  void set(std::string_view key, std::string_view value, Done<void> done) override;
  void multi_set(const Entries& entries, Done<void> done) override;
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) override;
  void put_if_absent(std::string_view key, std::string_view value, Done<std::string> done) override;
  void probe(std::string_view key, Done<std::optional<std::string>> done) override;
  void multi_get(const Keys& keys, Ms timeout, Done<Keys> done) override;
  void wait(const Keys& keys, Ms timeout, Done<void> done) override;
  void forget_waits() override;
  std::unique_ptr<Watch> watch(std::string_view key,
                               std::function<void(std::string)> done) override;
  void add_bare(std::string_view key, std::int64_t delta);  // without the "/"
  // Returns the value now stored, in the TCPStore's way: the expected value if the key is missing.
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done);

 private:
  void connected(const Result<void>& outcome);
  void lost(const Error& error);

  io::Loop& loop_;
  store::AsyncClientOptions options_;
  store::AsyncClient quick_;
  std::unique_ptr<store::AsyncClient> waits_;
  Done<void> connect_done_;
  int connections_ = 0;
  bool lost_ = false;
  std::function<void(const Error&)> on_lost_;
};

}  // namespace lockstep::rendezvous
