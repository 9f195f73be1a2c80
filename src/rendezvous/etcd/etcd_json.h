// How much JSON one answer of etcd's may hold: a lease of each of 65,536 nodes fits, with its seven
// members.
#pragma once

#include "codec/json.h"

namespace lockstep::rendezvous::etcd {

inline constexpr codec::JsonLimits kEtcdJson{.bytes = 16U << 20, .values = 512U << 10};

}  // namespace lockstep::rendezvous::etcd
