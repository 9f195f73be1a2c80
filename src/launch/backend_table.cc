#include "launch/backend_row.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"

#include <algorithm>
#include <array>

namespace lockstep::launch {
namespace {

// In the order of help texts.
constexpr std::array<const BackendRow*, 6> kBackends = {&kStatic, &kC10d,  &kEtcd,
                                                        &kEtcdV2, &kEtcd3, &kLockstep};

}  // namespace

const BackendRow& static_backend() {
  return kStatic;
}
const BackendRow& c10d_backend() {
  return kC10d;
}
const BackendRow& lockstep_backend() {
  return kLockstep;
}

std::span<const BackendRow* const> backends() {
  return kBackends;
}

const BackendRow* find_backend(std::string_view name) {
  const auto* const found = std::find_if(kBackends.begin(), kBackends.end(),
                                         [&](const BackendRow* row) { return row->name == name; });
  return found == kBackends.end() ? nullptr : *found;
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  names.reserve(kBackends.size());
  for (const BackendRow* row : kBackends)
    names.push_back(row->name);
  return names;
}

bool survives_a_loss(const LaunchConfig& config) {
  return config.min_nodes < config.max_nodes || config.spares > 0 ||
         (config.max_restarts > 0 && config.replacement);
}

std::string_view order_name(rendezvous::RankOrder order) {
  switch (order) {
    case rendezvous::RankOrder::host:
      return "host";
    case rendezvous::RankOrder::node_rank:
      return "node-rank";
    case rendezvous::RankOrder::address:
      return "address";
    case rendezvous::RankOrder::arrival:
      break;
  }
  return "arrival";
}

}  // namespace lockstep::launch
