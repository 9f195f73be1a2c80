// The table of rendezvous backends. A row holds everything that rules, help, completion, --explain
// and the agent need to know about a backend. No other code compares a backend's name.
// A new backend is a folder of the rendezvous room, a file in launch/backends/ with the row, and a
// line in backend_table.cc.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "launch/conf_values.h"
#include "rendezvous/backend.h"
#include "rendezvous/rank_order.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

struct LaunchConfig;

// A key of every backend: may nodes of the same role launch programs of different names?
inline constexpr ConfKey kEntrypointKey = {
    .name = "entrypoint", .type = ConfKey::Type::choice, .choices = {"same", "any"}};

// Inputs of a backend besides the configuration.
struct BackendParts {
  io::Loop& loop;
  rendezvous::NodeOffer offer;
  rendezvous::OfferStore offer_store;
};

struct BackendRow {
  enum class Place {
    node,    // nodes meet at a node of the job
    master,  // as node, with ranks fixed beforehand: --node-rank, --master-addr
    etcd,    // nodes meet in etcd
  };

  std::string_view name;
  std::string_view summary;  // one line, for help texts
  Place place = Place::node;
  int default_port = 0;            // -1: the endpoint must name a port
  std::size_t most_endpoints = 1;  // limit of places in --rdzv-endpoint
  bool beside_torchrun = false;    // agents of torchrun may take part, so torchrun's rules apply
  bool takes_token = false;
  std::span<const rendezvous::RankOrder>
      orders;                     // supported orders of ranks; the first is the default
  std::span<const ConfKey> keys;  // settings read from --rdzv-conf
  // Returns whether the endpoint is a path of a file that all nodes see; nullptr: never.
  bool (*meets_in_file)(const ConfValues& conf) = nullptr;
  // Checks settings that depend on each other; nullptr: nothing to check.
  Status (*check)(const ConfValues& conf) = nullptr;
  // Returns what the loss of the node or service where the nodes meet means, for --explain.
  std::string (*without_host)(const LaunchConfig& config) = nullptr;
  std::unique_ptr<rendezvous::Backend> (*make)(const LaunchConfig& config,
                                               BackendParts parts) = nullptr;

  bool fixed() const { return place == Place::master; }
  bool in_file(const ConfValues& conf) const {
    return meets_in_file != nullptr && meets_in_file(conf);
  }
};

// Returns whether the job may go on after the loss of a node: without the node, with a spare, or
// with another node and a restart.
bool survives_a_loss(const LaunchConfig& config);

// Backends chosen by rules when the user names none.
const BackendRow& static_backend();
const BackendRow& c10d_backend();
const BackendRow& lockstep_backend();

// Returns all rows, in the order of help texts.
std::span<const BackendRow* const> backends();
const BackendRow* find_backend(std::string_view name);  // nullptr: unknown name
std::vector<std::string_view> backend_names();

std::string_view order_name(rendezvous::RankOrder order);  // as --rank-order has it

}  // namespace lockstep::launch
