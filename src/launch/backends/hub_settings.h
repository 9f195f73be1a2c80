// Keys and settings shared by the backends that meet at Lockstep's hub: lockstep and etcd3.
#pragma once

#include "launch/backend_row.h"
#include "rendezvous/hub/hub_backend.h"

#include <array>

namespace lockstep::launch {

inline constexpr std::array kHubKeys = {
    ConfKey{.name = "join_timeout", .otherwise = 600},
    ConfKey{.name = "last_call_timeout", .otherwise = 30},
    ConfKey{.name = "close_timeout", .otherwise = 30},
    ConfKey{.name = "read_timeout", .otherwise = 600},
    ConfKey{.name = "heartbeat_timeout", .otherwise = 5},
    ConfKey{.name = "keep_alive_interval", .otherwise = 1},
    kEntrypointKey,
    ConfKey{.name = "keep_alive_max_attempt", .otherwise = 5},
};

inline constexpr std::array kHubOrders = {
    rendezvous::RankOrder::host, rendezvous::RankOrder::node_rank, rendezvous::RankOrder::address};

// Returns all settings except the endpoint and whether this node hosts the hub.
rendezvous::hub::HubSettings hub_settings(const LaunchConfig& config, BackendParts parts);
// Returns all settings of the backend `lockstep`.
rendezvous::hub::HubSettings lockstep_settings(const LaunchConfig& config, BackendParts parts);

}  // namespace lockstep::launch
