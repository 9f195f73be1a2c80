// The rendezvous backends, one row each: all that rules, help, completion, --explain and the agent
// need to know of one. Nothing else in the program compares a backend's name.
//
// A new backend is a folder of the rendezvous room, a file in launch/backends/ with its row, and a
// line in backend_table.cc.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "launch/conf_values.h"
#include "rendezvous/backend.h"
#include "rendezvous/rank_order.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::launch {

struct LaunchConfig;

// Every backend's: whether nodes of one role may launch programs of different names.
inline constexpr ConfKey kEntrypointKey = {
    .name = "entrypoint", .type = ConfKey::Type::choice, .choices = {"same", "any"}};

// What a backend is made from, beside its settings in the configuration.
struct BackendParts {
  io::Loop& loop;
  rendezvous::NodeOffer offer;
  rendezvous::OfferStore offer_store;
};

struct BackendRow {
  enum class Place {
    node,    // nodes meet at one of their own
    master,  // the same, and which node is which was said beforehand: --node-rank, --master-addr
    etcd,    // nodes meet in etcd
  };

  std::string_view name;
  std::string_view summary;  // for people, one line
  Place place = Place::node;
  int default_port = 0;            // -1: the endpoint has to name one
  std::size_t most_endpoints = 1;  // that --rdzv-endpoint may list
  bool beside_torchrun = false;    // agents of torchrun's may take part, so its rules hold
  bool takes_token = false;
  std::span<const rendezvous::RankOrder> orders;  // that it can keep; the first is its own
  std::span<const ConfKey> keys;                  // of --rdzv-conf
  // Whether the endpoint is the path of a file that all nodes see; none: never.
  bool (*meets_in_file)(const ConfValues& conf) = nullptr;
  // What no key can say alone: settings that go together.
  Status (*check)(const ConfValues& conf) = nullptr;
  std::unique_ptr<rendezvous::Backend> (*make)(const LaunchConfig& config,
                                               BackendParts parts) = nullptr;

  bool fixed() const { return place == Place::master; }
  bool in_file(const ConfValues& conf) const {
    return meets_in_file != nullptr && meets_in_file(conf);
  }
};

// Those that a rule may choose without being asked.
const BackendRow& static_backend();
const BackendRow& c10d_backend();
const BackendRow& lockstep_backend();

std::span<const BackendRow* const> backends();
const BackendRow* find_backend(std::string_view name);  // nullptr: none is called so
std::vector<std::string_view> backend_names();

std::string_view order_name(rendezvous::RankOrder order);  // as --rank-order has it

}  // namespace lockstep::launch
