// PyTorch's etcd-v2 backend: the rendezvous state in one key of etcd's v2 API, and a key-value
// store. Keys and bytes are those of torchrun's EtcdRendezvousBackend and EtcdStore.
#pragma once

#include "rendezvous/dynamic/state_store.h"
#include "rendezvous/etcd/etcd_transport.h"
#include "rendezvous/etcd/etcd_v2_codec.h"
#include "rendezvous/key_value.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::etcd {

// The state in the key RUN_ID under /torch/elastic/rendezvous/. The key expires two hours after the
// last write. The token is etcd's modifiedIndex.
class EtcdV2State : public dynamic::StateStore {
 public:
  // The transport must outlive the object.
  EtcdV2State(EtcdTransport& etcd, const std::string& run_id);

  void read(Done<Stored> done) override;
  void write(const Stored& before, const std::string& text, Done<Stored> done) override;

 private:
  void ask(EtcdTransport::Request request, std::function<void(Result<V2Reply>)> done);

  std::string key_;
  EtcdCalls calls_;
};

// The store under /torch/elastic/store/, keys and values in base64. Its keys never expire.
class EtcdV2Store : public KeyValue {
 public:
  // The transport must outlive the object.
  explicit EtcdV2Store(EtcdTransport& etcd, std::string prefix = "/torch/elastic/store/");
  ~EtcdV2Store() override;

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

  struct Core;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace lockstep::rendezvous::etcd
