// Keys and settings shared by the backends over torchrun's state: c10d and etcd-v2.
#pragma once

#include "launch/backend_row.h"
#include "rendezvous/dynamic/dynamic_backend.h"

#include <array>

namespace lockstep::launch {

// PyTorch's keys and defaults, in seconds where times.
inline constexpr std::array kDynamicKeys = {
    ConfKey{.name = "join_timeout", .otherwise = 600},
    ConfKey{.name = "last_call_timeout", .otherwise = 30},
    ConfKey{.name = "close_timeout", .otherwise = 30},
    ConfKey{.name = "read_timeout", .otherwise = 60},
    ConfKey{.name = "heartbeat_timeout", .otherwise = 5},
    ConfKey{.name = "keep_alive_interval", .otherwise = 5},
    kEntrypointKey,
    ConfKey{.name = "keep_alive_max_attempt", .otherwise = 3},
};

inline constexpr std::array kDynamicOrders = {
    rendezvous::RankOrder::address, rendezvous::RankOrder::host, rendezvous::RankOrder::node_rank};

// Creates a dynamic backend with its state at `place`.
std::unique_ptr<rendezvous::Backend> make_dynamic(
    const LaunchConfig& config, std::unique_ptr<rendezvous::dynamic::MeetingPlace> place,
    BackendParts parts);

}  // namespace lockstep::launch
